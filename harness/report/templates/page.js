(() => {
  const all = (q, e = document) => [...e.querySelectorAll(q)];
  document.documentElement.classList.add('js');

  // Native titles work without this script; with it, one quick tip serves mouse, touch and keys.
  const tip = document.body.appendChild(document.createElement('div'));
  tip.id = 'tip';
  let on = null;
  for (const t of all('.h > title')) { t.parentNode.dataset.tip = t.textContent; t.remove(); }
  function show(mark, x, y) {
    if (on) on.classList.remove('on');
    on = mark;
    tip.style.display = mark ? 'block' : 'none';
    if (!mark) return;
    mark.classList.add('on');
    tip.textContent = mark.dataset.tip;
    const b = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(innerWidth - b.width - 4, x + 12)) + 'px';
    tip.style.top = (y - b.height - 10 < 4 ? y + 16 : y - b.height - 10) + 'px';
  }
  const point = e => show(e.target.closest ? e.target.closest('.h') : null, e.clientX, e.clientY);
  addEventListener('pointermove', point, { passive: true });
  addEventListener('pointerdown', point, { passive: true });
  addEventListener('scroll', () => show(null), { passive: true });

  // A plot is one tab stop; arrows walk its marks, Escape leaves.
  for (const svg of all('.panel > svg')) {
    svg.tabIndex = 0;
    let at = -1;
    svg.addEventListener('keydown', e => {
      const marks = all('.h', svg);
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
      if (e.key === 'Escape') return show(null);
      if (!step || !marks.length) return;
      e.preventDefault();
      at = (at + step + marks.length) % marks.length;
      const b = marks[at].getBoundingClientRect();
      show(marks[at], b.left + b.width / 2, b.top);
    });
    svg.addEventListener('blur', () => show(null));
  }

  // The table of cells: sort by any column (absent last), keep the rows that hold every word.
  const table = document.getElementById('cells');
  if (table) {
    const rows = [...table.tBodies[0].rows];
    for (const label of all('.sort', table)) {
      const b = document.createElement('button');
      b.type = 'button';
      b.textContent = label.textContent;
      label.replaceWith(b);
      b.addEventListener('click', () => {
        const th = b.closest('th'), i = th.cellIndex;
        const dir = th.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
        all('th', table.tHead).forEach(t => t.removeAttribute('aria-sort'));
        th.setAttribute('aria-sort', dir > 0 ? 'ascending' : 'descending');
        const key = r => r.cells[i].dataset.v ?? r.cells[i].textContent;
        rows.sort((r, s) => {
          const a = key(r), c = key(s);
          if (a === '' || c === '') return (a === '') - (c === '');
          return dir * (isNaN(a) || isNaN(c) ? a.localeCompare(c) : a - c);
        });
        rows.forEach(r => { table.tBodies[0].append(r); r.classList.remove('first'); });
      });
    }
    const words = document.getElementById('words'), count = document.getElementById('count');
    // One box per mode and outcome, made from the rows themselves; a column of very many kinds has the words alone.
    const heads = all('th', table.tHead).map(th => th.textContent);
    const picks = ['mode', 'outcome'].flatMap(name => {
      const i = heads.indexOf(name), kinds = [...new Set(rows.map(r => r.cells[i].textContent))];
      if (kinds.length < 2 || kinds.length > 10) return [];
      const set = document.getElementById('picks').appendChild(document.createElement('fieldset'));
      set.setAttribute('aria-label', name);
      const boxes = kinds.map(kind => {
        const label = set.appendChild(document.createElement('label')), box = document.createElement('input');
        box.type = 'checkbox';
        box.checked = true;
        label.append(box, kind);
        box.addEventListener('change', filter);
        return box;
      });
      return [r => boxes[kinds.indexOf(r.cells[i].textContent)].checked];
    });
    function filter() {
      const w = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const r of rows) r.hidden = !(picks.every(p => p(r)) && w.every(x => r.textContent.toLowerCase().includes(x)));
      count.textContent = `${rows.filter(r => !r.hidden).length} of ${rows.length} cells`;
    }
    words.addEventListener('input', filter);
    filter();
  }

  for (const c of all('.cmd')) {
    const b = c.appendChild(document.createElement('button'));
    b.type = 'button';
    b.textContent = 'copy';
    b.addEventListener('click', async () => {
      try { await navigator.clipboard.writeText(c.firstChild.textContent); b.textContent = 'copied'; }
      catch { getSelection().selectAllChildren(c.firstChild); b.textContent = 'selected'; }
    });
  }
  // Folded on screen, open on paper.
  addEventListener('beforeprint', () => all('details').forEach(d => { d.dataset.was = d.open; d.open = true; }));
  addEventListener('afterprint', () => all('details').forEach(d => { d.open = d.dataset.was === 'true'; }));
})();
