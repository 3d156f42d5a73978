// A figure as SVG, PNG or CSV, made of what the page has: the links work when it was mailed alone, too.
(() => {
  const NS = document.querySelector('svg.defs').namespaceURI, root = document.documentElement;
  const KEPT = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'opacity',
    'font-size', 'font-weight', 'font-style', 'paint-order'];
  const COLUMNS = 3, GAP = 24, EDGE = 16, SCALE = 2;

  // A copy of a drawing with the page's styles written into it.
  function styled(from) {
    const to = from.cloneNode(true), of = [from, ...from.querySelectorAll('*')];
    [to, ...to.querySelectorAll('*')].forEach((copy, i) => {
      const style = getComputedStyle(of[i]);
      for (const name of KEPT) copy.style.setProperty(name, style.getPropertyValue(name));
      if (copy.dataset.tip) copy.prepend(Object.assign(document.createElementNS(NS, 'title'), { textContent: copy.dataset.tip }));
      for (const name of ['class', 'data-tip', 'role', 'aria-label', 'tabindex', 'aria-hidden']) copy.removeAttribute(name);
    });
    return to;
  }

  function sheet(figure) {
    const panels = [...figure.querySelectorAll('.panel')], size = p => p.querySelector('svg').viewBox.baseVal;
    const columns = Math.min(COLUMNS, panels.length), wide = Math.max(...panels.map(p => size(p).width));
    const out = document.createElementNS(NS, 'svg'), width = Math.max(640, 2 * EDGE + columns * (wide + GAP) - GAP);
    const put = (text, x, y, style) => {
      const t = out.appendChild(document.createElementNS(NS, 'text'));
      t.setAttribute('x', x);
      t.setAttribute('y', y);
      t.setAttribute('style', `font-size:12px;fill:#171a1f;${style}`);
      t.textContent = text;
      return t;
    };
    const place = (drawing, x, y, w, h) => {
      for (const [name, value] of Object.entries({ x, y, width: w, height: h })) drawing.setAttribute(name, value);
      drawing.style.overflow = 'visible';
      out.append(drawing);
    };
    const ground = out.appendChild(document.createElementNS(NS, 'rect'));
    out.append(styled(document.querySelector('svg.defs defs')));
    put(figure.querySelector('.q').textContent, EDGE, 26, 'font-size:14px;font-weight:bold');
    put([...figure.querySelectorAll('.fh .simtag')].map(t => t.textContent).join(' · '), width - EDGE, 26, 'text-anchor:end');
    let x = EDGE;
    for (const key of figure.querySelectorAll('.fh .k')) {
      place(styled(key.querySelector('svg')), x, 38, 12, 12);
      put(key.textContent, x + 17, 48, '');
      x += 36 + 7.4 * key.textContent.length;
    }
    let y = 62;
    for (let at = 0; at < panels.length; at += columns) {
      const row = panels.slice(at, at + columns);
      row.forEach((panel, i) => {
        const left = EDGE + i * (wide + GAP), [title, rest] = [panel.querySelector('h4').firstChild, panel.querySelector('h4 span')];
        const head = put(title.textContent.trim(), left, y + 12, 'font-size:13px;font-weight:bold');
        const more = head.appendChild(document.createElementNS(NS, 'tspan'));
        more.setAttribute('dx', 6);
        more.setAttribute('style', 'font-weight:normal;fill:#686f7a');
        more.textContent = rest.textContent;
        const drawing = panel.querySelector('svg');
        place(styled(drawing), left, y + 24, size(panel).width, size(panel).height);
      });
      y += Math.max(...row.map(p => size(p).height)) + 24 + GAP;
    }
    for (const [name, value] of [['width', width], ['height', y], ['viewBox', `0 0 ${width} ${y}`]]) out.setAttribute(name, value);
    out.setAttribute('font-family', 'DejaVu Sans, Verdana, sans-serif');
    ground.setAttribute('width', width);
    ground.setAttribute('height', y);
    ground.setAttribute('fill', '#fff');
    return { text: new XMLSerializer().serializeToString(out), width, height: y };
  }

  // In the colours of the light page, whatever is shown.
  function light(figure) {
    root.classList.add('light');
    try { return sheet(figure); } finally { root.classList.remove('light'); }
  }

  async function pixels({ text, width, height }) {
    const image = new Image(), canvas = document.createElement('canvas');
    await new Promise((done, failed) => {
      image.onload = done;
      image.onerror = failed;
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
    [canvas.width, canvas.height] = [width * SCALE, height * SCALE];
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise(done => canvas.toBlob(done, 'image/png'));
  }

  const MADE = {
    csv: figure => new Blob([figure.querySelector('.csv').textContent], { type: 'text/csv' }),
    svg: figure => new Blob([light(figure).text], { type: 'image/svg+xml' }),
    png: figure => pixels(light(figure)),
  };
  for (const link of document.querySelectorAll('.get a[data-kind]')) {
    // The rows of a long table are in its file alone.
    if (link.dataset.kind === 'csv' && !link.closest('figure').querySelector('.csv')) continue;
    link.addEventListener('click', async e => {
      e.preventDefault();
      const to = document.createElement('a');
      to.href = URL.createObjectURL(await MADE[link.dataset.kind](link.closest('figure')));
      to.download = link.download;
      to.click();
      setTimeout(() => URL.revokeObjectURL(to.href), 60000);
    });
  }
})();
