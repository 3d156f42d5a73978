// A page that is served while it fills: it loads itself again when something was stored, and keeps what is open, and where it is.
(() => {
  const state = document.body.dataset.state, line = document.getElementById('live');
  if (state === undefined || !line) return;
  const folds = () => [...document.querySelectorAll('details')];
  const name = d => d.id || (d.matches('.sec') ? d.parentElement.id : `${d.closest('section')?.id} ${d.firstElementChild?.textContent}`);
  try {
    const kept = JSON.parse(sessionStorage.getItem('collo-live') || 'null');
    if (kept) {
      folds().forEach(d => { d.open = kept.open.includes(name(d)); });
      scrollTo(0, kept.y);
    }
  } catch { /* without storage the page begins at its top */ }
  addEventListener('pagehide', () => {
    try { sessionStorage.setItem('collo-live', JSON.stringify({ open: folds().filter(d => d.open).map(name), y: scrollY })); } catch { /* likewise */ }
  });
  if (state.endsWith('ended')) return;
  const look = setInterval(async () => {
    try {
      const now = await fetch('state', { cache: 'no-store' });
      if (now.ok && await now.text() !== state) location.reload();
    } catch {
      clearInterval(look);
      line.textContent = 'This page is no longer served: it is as it was last loaded.';
    }
  }, 1000);
})();
