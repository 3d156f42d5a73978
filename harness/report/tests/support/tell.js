// Read the page as a reader would, press its buttons, and tell what happened in the page itself, where the dump shows it.
const all = (q, e = document) => [...e.querySelectorAll(q)];
const tell = {wrong, width: document.documentElement.clientWidth, overflow: document.scrollingElement.scrollWidth, head: document.querySelector(".facts").offsetHeight, scripts: document.scripts.length};
tell.dead = all('a[href^="#"]').map(a => a.getAttribute('href').slice(1)).filter(id => !document.getElementById(id));
tell.twice = all('[id]').map(e => e.id).filter((id, i, ids) => ids.indexOf(id) !== i);
// What is folded: links and the button open it.
const sections = all('details.sec');
const folded = () => sections.filter(d => !d.open).length;
tell.folded = {sections: sections.length, first: folded()};
const link = document.querySelector('nav a[href="#sec-quality"]');
if (link) { link.click(); tell.folded.opened = sections.filter(d => d.open).map(d => d.parentNode.id); }
sections.forEach(d => d.open = false);
location.hash = '#cells?find=small';
dispatchEvent(new HashChangeEvent('hashchange'));
tell.folded.address = sections.filter(d => d.open).map(d => d.parentNode.id);
location.hash = '#cells?';
dispatchEvent(new HashChangeEvent('hashchange'));
const every = document.querySelector('nav button');
if (every) { every.click(); tell.folded.all = folded(); every.click(); tell.folded.none = folded(); }
dispatchEvent(new Event('beforeprint'));
tell.folded.printed = folded();
dispatchEvent(new Event('afterprint'));
tell.folded.after = folded();
all('details').forEach(d => d.open = true);
tell.opened = document.scrollingElement.scrollWidth;
const scrolls = e => e && (getComputedStyle(e).overflowX !== 'visible' || scrolls(e.parentElement));
tell.wide = all('main *').filter(e => e.getBoundingClientRect().right > tell.width + 1 && !scrolls(e.parentElement)).slice(0, 9)
  .map(e => `${e.tagName}.${e.getAttribute('class')} ${e.textContent.slice(0, 40)}`);
tell.figures = all('figure').map(f => ({
  id: f.id,
  panels: all('.panel', f).map(p => all('.h:not(.published)', p).filter(h => h.dataset.tip).length),
  rows: all('.vals tbody tr', f).length,
  outside: all('.panel > svg', f).flatMap(s => all('text', s).filter(t => {
    const b = t.getBBox(), m = t.getCTM(), w = s.viewBox.baseVal.width;
    return t.transform.baseVal.length === 0 && (b.x < -3 || b.x + b.width > w + 8);
  }).map(t => t.textContent)),
}));
const table = document.getElementById('cells');
if (table) {
  const rows = () => all('tbody tr', table).filter(r => !r.hidden);
  const heads = all('th', table.tHead).map(th => th.textContent);
  const column = i => rows().map(r => r.cells[i].dataset.v ?? r.cells[i].textContent);
  tell.heads = heads;
  tell.plan = column(0);
  tell.sorted = {};
  for (const name of ['gain', 'cell']) {
    const i = heads.indexOf(name);
    if (i < 0) continue;
    const button = table.tHead.rows[0].cells[i].querySelector('button');
    button.click();
    const up = column(i), said = table.tHead.rows[0].cells[i].getAttribute('aria-sort');
    button.click();
    tell.sorted[name] = {up, said, down: column(i), then: table.tHead.rows[0].cells[i].getAttribute('aria-sort')};
  }
  const words = document.getElementById('words'), count = () => document.getElementById('count').textContent;
  const type = text => { words.value = text; words.dispatchEvent(new Event('input')); };
  tell.all = count();
  type('naive small');
  tell.words = [count(), column(0)];
  type('');
  const boxes = all('#picks input');
  tell.boxes = boxes.map(b => b.parentNode.textContent);
  if (boxes.length) { boxes[0].click(); tell.unticked = [count(), column(1)]; boxes[0].click(); }
  tell.again = count();
  // The address keeps what is chosen, and an address restores it.
  type('naive');
  tell.address = location.hash;
  type('');
  location.hash = '#cells?find=small&hide=outcome&sort=-gain';
  dispatchEvent(new HashChangeEvent('hashchange'));
  const hidden = heads.filter((_, i) => table.tHead.rows[0].cells[i].hidden && rows().every(r => r.cells[i].hidden));
  const gain = heads.indexOf('gain');
  tell.restored = [count(), words.value, hidden, gain < 0 ? '' : table.tHead.rows[0].cells[gain].getAttribute('aria-sort')];
  location.hash = '#cells?';
  dispatchEvent(new HashChangeEvent('hashchange'));
  const open = table.querySelector('.open');
  if (open) {
    open.click();
    tell.row = [open.getAttribute('aria-expanded'), open.closest('tr').nextSibling.textContent, open.textContent];
    open.click();
    tell.row.push(rows().length);
  }
}
// The files that links make: what would be saved is kept here.
const taken = [], RealBlob = window.Blob;
window.Blob = function (parts, { type }) { taken.push([type, parts.join('')]); return new RealBlob(parts, { type }); };
URL.createObjectURL = () => '#';
tell.taken = all('figure').slice(0, 4).map(f => {
  taken.length = 0;
  for (const kind of ['svg', 'csv']) f.querySelector(`.get a[data-kind=${kind}]`)?.click();
  const [svg, csv] = ['image/svg+xml', 'text/csv'].map(t => taken.find(x => x[0] === t)?.[1] ?? '');
  const drawn = new DOMParser().parseFromString(svg, 'image/svg+xml');
  return {
    id: f.id, broken: drawn.querySelector('parsererror') !== null, titles: drawn.querySelectorAll('g > title').length,
    marks: all('.panel .h', f).length, own: /var\(|class=/.test(svg), ground: drawn.querySelector('rect')?.getAttribute('fill'),
    rows: csv.trim().split('\n').length - 1, values: all('.vals tbody tr', f).length,
  };
});
window.Blob = RealBlob;
const plot = document.querySelector('.panel > svg'), tip = document.getElementById('tip');
if (plot) {
  const press = key => plot.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  plot.focus();
  tell.focus = [document.activeElement === plot, all('.panel > svg').length, all('[tabindex="0"] [tabindex]', document.querySelector('main')).length];
  const marks = all('.h', plot);
  press('ArrowRight');
  const first = [tip.style.display, tip.textContent, marks[0].dataset.tip, marks[0].classList.contains('on')];
  press('ArrowRight');
  const second = [tip.textContent, marks[Math.min(1, marks.length - 1)].dataset.tip];
  press('Escape');
  tell.keys = {first, second, after: tip.style.display};
}
const told = document.body.appendChild(document.createElement('pre'));
told.id = 'told';
told.textContent = JSON.stringify(tell);
