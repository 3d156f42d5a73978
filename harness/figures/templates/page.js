(() => {
  const all = (q, e = document) => [...e.querySelectorAll(q)];
  document.documentElement.classList.add('js');

  // Native titles work without this script; with it, one quick tip serves mouse, touch and keys.
  const tip = document.body.appendChild(document.createElement('div'));
  tip.id = 'tip';
  let on = null;
  for (const t of all('.h > title')) {
    const mark = t.parentNode;
    mark.dataset.tip = t.textContent;
    mark.setAttribute('role', 'img');
    mark.setAttribute('aria-label', t.textContent);
    t.remove();
  }
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

  for (const c of all('.cmd')) {
    const b = c.appendChild(document.createElement('button'));
    b.type = 'button';
    b.textContent = 'copy';
    b.addEventListener('click', async () => {
      try { await navigator.clipboard.writeText(c.firstChild.textContent); b.textContent = 'copied'; }
      catch { getSelection().selectAllChildren(c.firstChild); b.textContent = 'selected'; }
    });
  }
  // What a link leads to is opened with everything that it is folded in.
  function reveal(id) {
    const to = id && document.getElementById(id);
    if (!to) return;
    const folded = to.matches('section') ? to.querySelector(':scope > details') : to.closest('details');
    for (let d = folded; d; d = d.parentElement.closest('details')) d.open = true;
    to.scrollIntoView();
  }
  const named = () => location.hash.slice(1).split('?')[0];
  addEventListener('hashchange', () => reveal(named()));
  for (const a of all('a[href^="#"]:not(.skip)')) a.addEventListener('click', () => reveal(a.getAttribute('href').slice(1)));
  reveal(named());

  const sections = all('details.sec'), nav = document.querySelector('nav');
  if (nav && sections.length) {
    const b = nav.appendChild(document.createElement('button'));
    const name = () => { b.textContent = sections.every(d => d.open) ? 'fold all' : 'open all'; };
    b.type = 'button';
    b.addEventListener('click', () => { const open = !sections.every(d => d.open); sections.forEach(d => { d.open = open; }); });
    sections.forEach(d => d.addEventListener('toggle', name));
    name();
  }
  // Sections are folded on screen and open on paper; what is folded inside them is printed if it is open.
  addEventListener('beforeprint', () => sections.forEach(d => { d.dataset.was = d.open; d.open = true; }));
  addEventListener('afterprint', () => sections.forEach(d => { d.open = d.dataset.was === 'true'; }));
})();
