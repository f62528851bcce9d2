// What can be taken away: a map as CSV, a picture as SVG or PNG.

// Of the first picture: the head's map, the mean of the heads that are on, or the numbers of all heads.
function currentCsv() {
  const f = context(figures[0]);
  if (viewNow() === modelView) {
    const rows = layerNumbers.flatMap((layer) => headNumbers.map((head, a) =>
      [layer, head, statistic('entropy', f.text, layer, a), statistic('distance', f.text, layer, a)].join(',')));
    return ['layer,head,entropy,distance', ...rows].join('\n') + '\n';
  }
  const s = state.view === 'neuron' ? {...state, words: 0} : state;
  const maps = f.places.map((a) => matrix(f.text, f.layer, a, s));
  if (!maps.length) return '';
  const w = maps[0].w.map((_, i) => maps.reduce((sum, map) => sum + map.w[i], 0) / maps.length);
  return asCsv({...maps[0], w});
}

function currentSvg() {
  const parts = figures.map((figure) => context(figure)), sizes = parts.map((f) => viewNow().size(f));
  const width = sizes.reduce((sum, size) => sum + size.width, 0);
  const height = Math.max(...sizes.map((size) => size.height));
  const paper = new SvgPaper(width, height, parts[0].colors.paper);
  let x = 0;
  parts.forEach((f, i) => {
    paper.parts.push(`<g transform="translate(${x} 0)">`);
    viewNow().draw(paper, f);
    paper.parts.push('</g>');
    x += sizes[i].width;
  });
  return paper.toString();
}

function currentPng() {
  const all = figures.map((figure) => figure.canvas), sheet = document.createElement('canvas');
  sheet.width = all.reduce((sum, canvas) => sum + canvas.width, 0);
  sheet.height = Math.max(...all.map((canvas) => canvas.height));
  const ink = sheet.getContext('2d');
  let x = 0;
  for (const canvas of all) {
    ink.drawImage(canvas, x, 0);
    x += canvas.width;
  }
  return new Promise((done) => { sheet.toBlob(done, 'image/png'); });
}

function save(blob, ending) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = `attention-${state.view}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
