// Model view: all layers and heads at once, each as the head view's lines, or as a small heat map where lines would be
// too many. Pictures are made layer by layer while the page stays usable.

const MODEL_TOP = 54, MODEL_LEFT = 60;
const MOST_CELL_LINES = 100;  // in one head's cell
const LINES_UP_TO = 40;       // tokens

function modelLayout(f) {
  const A = headNumbers.length, L = layerNumbers.length, gap = 5;
  const cell = Math.max(34, Math.min(120, Math.floor((f.width - MODEL_LEFT - 8) / A) - gap));
  const step = cell + gap;
  return {A, L, cell, step, width: MODEL_LEFT + A * step + 8, height: MODEL_TOP + L * step + 44};
}

const asLines = (f) => facts.texts[f.text].count <= LINES_UP_TO;

// A small heat map: the largest weight under each pixel.
function thumbnailMap(map, side, theme) {
  const R = map.rows.length, C = map.columns.length, h = Math.min(R, side), v = Math.min(C, side);
  const most = new Float32Array(h * v);
  for (let r = 0; r < R; r++) {
    const row = Math.floor(r * h / R) * v;
    for (let c = 0; c < C; c++) {
      const at = row + Math.floor(c * v / C), w = map.w[r * C + c];
      if (w > most[at]) most[at] = w;
    }
  }
  return pixels(h, v, (r, c) => weightColor(most[r * v + c], theme));
}

function thumbnail(f, layer, a) {
  const {s} = f;
  return remember(`thumbnail ${f.text} ${layer} ${a} ${s.words} ${s.hide} ${s.filter} ${f.theme}`, () =>
    thumbnailMap(matrix(f.text, layer, a, s), 64, f.theme));
}

function drawCellLines(paper, f, layer, a, x, y, cell) {
  const map = matrix(f.text, layer, a, f.s), inside = cell - 8;
  const place = (r, c) => [x + 5, y + 4 + inside * (r + 0.5) / map.rows.length,
    x + cell - 5, y + 4 + inside * (c + 0.5) / map.columns.length];
  drawLinks(paper, map, headColor(a), {min: enough([map], f.s.min, MOST_CELL_LINES), place, scale: 0.6});
}

function drawCell(paper, f, row, k, a, layout) {
  const x = MODEL_LEFT + k * layout.step, y = MODEL_TOP + row * layout.step, layer = layerNumbers[row];
  if (asLines(f)) drawCellLines(paper, f, layer, a, x, y, layout.cell);
  else paper.image(thumbnail(f, layer, a), x, y, layout.cell, layout.cell);
  paper.frame(x, y, layout.cell, layout.cell, f.colors.edge);
  if (f.s.sort === 'number') return;
  const label = `h${headNumbers[a]}`, width = textWidth(label, 10) + 6;
  paper.rect(x + layout.cell - width, y, width, 14, f.colors.paper, 0.85);
  paper.text(label, x + layout.cell - 3, y + 7, {color: f.colors.text, size: 10, align: 'right'});
}

const modelView = {
  size: (f) => modelLayout(f),

  draw(paper, f) {
    const layout = modelLayout(f), {colors} = f, sorted = f.s.sort !== 'number';
    drawCaption(paper, f, 'Every layer and head' + (sorted ? `; in each layer sorted by ${f.s.sort}` : ''));
    for (let k = 0; k < layout.A; k++)
      paper.text(sorted ? `${k + 1}.` : String(headNumbers[k]), MODEL_LEFT + k * layout.step + layout.cell / 2,
        MODEL_TOP - 10, {color: colors.soft, size: 12, align: 'center'});
    paper.text(sorted ? 'rank' : 'head', MODEL_LEFT - 7, MODEL_TOP - 10,
      {color: colors.soft, size: 11, align: 'right'});
    layerNumbers.slice(0, f.rows ?? layout.L).forEach((layer, row) => {
      paper.text(`layer ${layer}`, MODEL_LEFT - 7, MODEL_TOP + row * layout.step + layout.cell / 2,
        {color: colors.soft, size: 11, align: 'right'});
      sortedHeads(f.s.sort, f.text, layer).forEach((a, k) => drawCell(paper, f, row, k, a, layout));
    });
    if (asLines(f)) {
      paper.text('left: attends, right: is attended to; strength of a line: weight', MODEL_LEFT, layout.height - 22,
        {color: colors.soft, size: 11});
    } else weightLegend(paper, MODEL_LEFT + 50, layout.height - 32, 280, f);
  },

  // The frame of the head that is pointed at.
  mark(paper, f) {
    if (!f.point) return;
    const {cell, step} = modelLayout(f), k = sortedHeads(f.s.sort, f.text, f.point.layer).indexOf(f.point.place);
    const row = layerNumbers.indexOf(f.point.layer);
    paper.frame(MODEL_LEFT + k * step, MODEL_TOP + row * step, cell, cell, f.colors.accent, 2.5);
  },

  at(f, x, y) {
    const layout = modelLayout(f), k = Math.floor((x - MODEL_LEFT) / layout.step);
    const row = Math.floor((y - MODEL_TOP) / layout.step);
    if (k < 0 || k >= layout.A || row < 0 || row >= layout.L) return null;
    return {layer: layerNumbers[row], place: sortedHeads(f.s.sort, f.text, layerNumbers[row])[k]};
  },

  move(f, point, key) {
    const {A, L} = modelLayout(f);
    let row = layerNumbers.indexOf(point?.layer ?? layerNumbers[0]);
    const order = () => sortedHeads(f.s.sort, f.text, layerNumbers[row]);
    let k = point ? order().indexOf(point.place) : 0;
    if (point) {
      k = Math.max(0, Math.min(A - 1, k + (key === 'ArrowRight') - (key === 'ArrowLeft')));
      row = Math.max(0, Math.min(L - 1, row + (key === 'ArrowDown') - (key === 'ArrowUp')));
    }
    return {layer: layerNumbers[row], place: order()[k]};
  },

  read(f, point) {
    const {w, rows, columns} = matrix(f.text, point.layer, point.place, f.s), n = columns.length;
    const order = Array.from(w.keys()).filter((i) => w[i] >= 0.05).sort((x, y) => w[y] - w[x]).slice(0, 6);
    const value = (name) => statistic(name, f.text, point.layer, point.place).toFixed(2);
    return {
      title: `Layer ${point.layer}, head ${headNumbers[point.place]}`,
      lines: [`entropy ${value('entropy')} nats`, `distance ${value('distance')} tokens`, 'Click to enlarge.'],
      head: ['strongest', 'weight'],
      rows: order.map((i) => [`${rows[Math.floor(i / n)].label} → ${columns[i % n].label}`, number(w[i])]),
    };
  },
};
