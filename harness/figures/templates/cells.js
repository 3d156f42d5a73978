// The table of cells: sort by any column (absent last), keep the rows that hold every word, choose columns, open a row. What is
// chosen stands in the address, `#cells?find=small&sort=gain`, so that a link shows the same rows.
(() => {
  const all = (q, e = document) => [...e.querySelectorAll(q)];
  const make = (tag, into, text = '') => Object.assign(into.appendChild(document.createElement(tag)), { textContent: text });
  // An image of this page's folder shows whether the folder is there.
  const plots = document.body.dataset.plots, first = document.querySelector('figure');
  if (plots && first) {
    const probe = new Image();
    probe.onerror = () => {
      all('a.run').forEach(a => a.removeAttribute('href'));
      all('.alone').forEach(p => { p.hidden = false; });
    };
    probe.src = `${plots}${first.id.slice(4)}.svg`;
  }
  const table = document.getElementById('cells');
  if (!table) return;
  const PLAN = [...table.tBodies[0].rows];
  let rows = [...PLAN];
  const heads = all('th', table.tHead).map(th => th.textContent);
  const words = document.getElementById('words'), count = document.getElementById('count');
  const sorted = { name: '', down: false };
  const opened = new Map();

  const close = r => { opened.get(r)?.remove(); opened.delete(r); r.querySelector('.open')?.setAttribute('aria-expanded', 'false'); };
  function sort() {
    const i = heads.indexOf(sorted.name), dir = sorted.down ? -1 : 1;
    all('th', table.tHead).forEach((th, k) => k === i ? th.setAttribute('aria-sort', sorted.down ? 'descending' : 'ascending') : th.removeAttribute('aria-sort'));
    [...opened.keys()].forEach(close);
    rows = [...PLAN];
    if (i >= 0) {
      const key = r => r.cells[i].dataset.v ?? r.cells[i].textContent;
      rows.sort((r, s) => {
        const a = key(r), c = key(s);
        if (a === '' || c === '') return (a === '') - (c === '');
        return dir * (isNaN(a) || isNaN(c) ? a.localeCompare(c) : a - c);
      });
      rows.forEach(r => r.classList.remove('first'));
    }
    rows.forEach(r => table.tBodies[0].append(r));
  }
  for (const label of all('.sort', table)) {
    const th = label.closest('th'), b = document.createElement('button');
    b.type = 'button';
    b.textContent = label.textContent;
    label.replaceWith(b);
    b.addEventListener('click', () => {
      sorted.down = sorted.name === heads[th.cellIndex] && !sorted.down;
      sorted.name = heads[th.cellIndex];
      sort();
      keep();
    });
  }

  // One box per mode and outcome, made from the rows themselves; a column of very many kinds has the words alone.
  function box(into, text, changed) {
    const label = make('label', into), input = make('input', label);
    input.type = 'checkbox';
    input.checked = true;
    label.append(text);
    input.addEventListener('change', changed);
    return input;
  }
  const picks = ['mode', 'outcome'].flatMap(name => {
    const i = heads.indexOf(name), kinds = [...new Set(PLAN.map(r => r.cells[i].textContent))];
    if (kinds.length < 2 || kinds.length > 10) return [];
    const set = make('fieldset', document.getElementById('picks'));
    set.setAttribute('aria-label', name);
    const boxes = kinds.map(kind => box(set, kind, () => { filter(); keep(); }));
    return [{ name, i, kinds, boxes }];
  });
  const columns = heads.map((name, i) => i && box(document.getElementById('cols'), name, () => { choose(); keep(); }));
  function choose() {
    heads.forEach((_, i) => {
      if (i) [table.tHead.rows[0], ...PLAN].forEach(r => { r.cells[i].hidden = !columns[i].checked; });
    });
  }
  function filter() {
    const w = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = r => picks.every(p => p.boxes[p.kinds.indexOf(r.cells[p.i].textContent)].checked);
    for (const r of PLAN) {
      r.hidden = !(shown(r) && w.every(x => r.textContent.toLowerCase().includes(x)));
      if (r.hidden) close(r);
    }
    count.textContent = `${PLAN.filter(r => !r.hidden).length} of ${PLAN.length} cells`;
  }

  // Everything about one cell, as `collo show` prints it, below its row.
  for (const text of all('.show')) {
    const r = document.getElementById(text.dataset.of);
    if (!r) continue;
    const name = r.cells[0], b = document.createElement('button');
    b.type = 'button';
    b.className = 'open';
    b.setAttribute('aria-expanded', 'false');
    b.append(...name.childNodes);
    name.append(b);
    b.addEventListener('click', () => {
      if (opened.has(r)) return close(r);
      const more = document.createElement('tr'), td = make('td', more);
      td.colSpan = heads.length;
      make('pre', td, text.textContent);
      r.after(more);
      opened.set(r, more);
      b.setAttribute('aria-expanded', 'true');
    });
  }

  function keep() {
    const q = new URLSearchParams();
    if (words.value.trim()) q.set('find', words.value.trim());
    for (const p of picks) {
      const off = p.kinds.filter((_, k) => !p.boxes[k].checked);
      if (off.length) q.set(`not-${p.name}`, off.join('|'));
    }
    const off = heads.filter((_, i) => i && !columns[i].checked);
    if (off.length) q.set('hide', off.join('|'));
    if (sorted.name) q.set('sort', (sorted.down ? '-' : '') + sorted.name);
    const to = q.size ? `#cells?${q}` : '#cells';
    if (location.hash || q.size) history.replaceState(null, '', to);
  }
  function restore() {
    const [, told] = location.hash.match(/^#cells\?(.*)$/) ?? [];
    if (told === undefined) return;
    const q = new URLSearchParams(told), list = name => (q.get(name) ?? '').split('|');
    words.value = q.get('find') ?? '';
    for (const p of picks) p.boxes.forEach((b, k) => { b.checked = !list(`not-${p.name}`).includes(p.kinds[k]); });
    columns.forEach((b, i) => { if (i) b.checked = !list('hide').includes(heads[i]); });
    const by = q.get('sort') ?? '';
    sorted.down = by.startsWith('-') && !heads.includes(by);
    sorted.name = sorted.down ? by.slice(1) : by;
    sort();
    choose();
    filter();
    document.getElementById('sec-cells')?.scrollIntoView();
  }
  words.addEventListener('input', () => { filter(); keep(); });
  addEventListener('hashchange', restore);
  filter();
  restore();
})();
