// Neuron view: how the weights of one token in one head come about, number by number.

const NEURON_TOP = 56;

function neuronLayout(f) {
  const all = rowsAndColumns(f.text, {...f.s, words: 0}), {columns} = all;
  const q = vectors('query', f.text, f.layer, f.places[0]), D = q?.D ?? 1;
  const longest = Math.max(40, ...columns.map((unit) => textWidth(unit.label)));
  const label = Math.ceil(Math.min(120, longest)) + 14, figures = 2 * 92;
  const pixel = Math.max(2, Math.min(7, Math.floor((f.width - 2 * label - figures - 60) / (3 * D))));
  const strip = pixel * D, gap = 16, line = 22;
  const x = {left: label, q: label + gap / 2};
  x.k = x.q + strip + gap;
  x.product = x.k + strip + gap;
  x.score = x.product + strip + gap;
  x.weight = x.score + 92;
  x.right = x.weight + 92;
  return {...all, D, label, strip, line, x, width: Math.max(f.width, x.right + label),
    height: NEURON_TOP + line * Math.max(all.rows.length, columns.length) + 46};
}

const neuronY = (layout, i) => NEURON_TOP + layout.line * (i + 0.5);
const heldRow = (f, layout) => {
  const first = layout.rows.findIndex((unit) => !isSpecial(unit.label));
  return Math.max(0, Math.min(layout.rows.length - 1, f.point?.row ?? first));
};

// What the strips show for row r: q [D], and of each column k [D], q×k [D], score, weight.
function neuronNumbers(f, layout, r) {
  const q = vectors('query', f.text, f.layer, f.places[0]), k = vectors('key', f.text, f.layer, f.places[0]);
  const map = matrix(f.text, f.layer, f.places[0], {...f.s, words: 0}), {D} = layout, i = layout.rows[r].tokens[0];
  const query = q.at.subarray(i * D, (i + 1) * D);
  const columns = layout.columns.map((unit, c) => {
    const key = k.at.subarray(unit.tokens[0] * D, (unit.tokens[0] + 1) * D), product = query.map((v, d) => v * key[d]);
    return {key, product, score: product.reduce((sum, v) => sum + v, 0) / Math.sqrt(D),
      weight: map.w[r * layout.columns.length + c]};
  });
  const most = (list) => list.reduce((m, v) => v.reduce((x, y) => Math.max(x, Math.abs(y)), m), 1e-9);
  return {query, columns, mostQ: most([query]), mostK: most(columns.map((x) => x.key)),
    mostP: most(columns.map((x) => x.product))};
}

function drawStrip(paper, f, layout, x, i, values, most) {
  const picture = pixels(1, values.length, (_, d) => signedColor(Math.sign(values[d]) *
    Math.sqrt(Math.abs(values[d]) / most), f.theme));
  paper.image(picture, x, neuronY(layout, i) - layout.line / 2 + 2, layout.strip, layout.line - 4);
  paper.frame(x, neuronY(layout, i) - layout.line / 2 + 2, layout.strip, layout.line - 4, f.colors.edge, 0.5);
}

function drawNeuronTitles(paper, f, layout, numbers) {
  const {x} = layout, y = NEURON_TOP - 14;
  const title = (text, at, align) => paper.text(text, at, y, {color: f.colors.soft, size: 11, align});
  title('attends', x.left - 6, 'right');
  title(`q   ±${numbers.mostQ.toFixed(1)}`, x.q, 'left');
  title(`k   ±${numbers.mostK.toFixed(1)}`, x.k, 'left');
  title(`q × k   ±${numbers.mostP.toFixed(1)}`, x.product, 'left');
  title('score: Σ / √' + layout.D, x.score + 78, 'right');
  title('softmax', x.weight + 78, 'right');
  title('is attended to', x.right, 'left');
}

function drawNeuronRow(paper, f, layout, c, column, mostScore) {
  const {x, line} = layout, {colors} = f, y = neuronY(layout, c);
  drawStrip(paper, f, layout, x.k, c, column.key, column.mostK);
  drawStrip(paper, f, layout, x.product, c, column.product, column.mostP);
  const bar = (at, value, color) => paper.rect(at, y - line / 2 + 3, 78 * value, line - 6, color, 0.35);
  bar(x.score, Math.abs(column.score) / mostScore, css(signedColor(Math.sign(column.score), f.theme)));
  bar(x.weight, column.weight, css(weightColor(0.4, f.theme)));
  paper.text(column.score.toFixed(2), x.score + 78, y, {color: colors.text, size: 12, align: 'right'});
  paper.text(number(column.weight), x.weight + 78, y, {color: colors.text, size: 12, align: 'right'});
  paper.text(fit(layout.columns[c].label, layout.label - 12), x.right, y,
    {color: colors.text, weight: f.point?.column === c ? 700 : 400});
}

const neuronView = {
  size: (f) => hasVectors ? neuronLayout(f) : {width: f.width, height: 140},

  draw(paper, f) {
    if (!hasVectors) {
      drawCaption(paper, f, 'This page has no queries and keys: they are left out when it would be large.');
      paper.text('bert attention --what weights,query,key puts them in; --layers and --heads keep it small.', 8, 44,
        {color: f.colors.soft});
      return;
    }
    const layout = neuronLayout(f), r = heldRow(f, layout), numbers = neuronNumbers(f, layout, r);
    const mostScore = Math.max(1e-9, ...numbers.columns.map((x) => Math.abs(x.score)));
    drawCaption(paper, f,
      `Layer ${f.layer}, ${headList(f.places)}: how “${layout.rows[r].label}” comes to its weights`);
    drawNeuronTitles(paper, f, layout, numbers);
    paper.rect(0, neuronY(layout, r) - layout.line / 2, layout.x.left, layout.line, f.colors.accent, 0.14);
    layout.rows.forEach((unit, i) => paper.text(fit(unit.label, layout.label - 12), layout.x.left - 6,
      neuronY(layout, i),
      {color: i === r ? f.colors.text : f.colors.soft, align: 'right', weight: i === r ? 700 : 400}));
    drawStrip(paper, f, layout, layout.x.q, r, numbers.query, numbers.mostQ);
    numbers.columns.forEach((column, c) => drawNeuronRow(paper, f, layout, c, {...column, ...numbers}, mostScore));
    paper.text('orange: negative, blue: positive; ink grows as the square root. Point at a token on the left.', 8,
      layout.height - 18, {color: f.colors.soft, size: 11});
  },

  at(f, x, y) {
    if (!hasVectors) return null;
    const layout = neuronLayout(f), i = Math.floor((y - NEURON_TOP) / layout.line);
    if (x <= layout.x.k - 8) return i >= 0 && i < layout.rows.length ? {row: i} : null;
    return i >= 0 && i < layout.columns.length ? {row: heldRow(f, layout), column: i, d: dimension(layout, x)} : null;
  },

  move(f, point, key) {
    if (!hasVectors) return null;
    const layout = neuronLayout(f), step = (key === 'ArrowDown') - (key === 'ArrowUp');
    return {row: Math.max(0, Math.min(layout.rows.length - 1, heldRow(f, layout) + step))};
  },

  read(f, point) {
    const layout = neuronLayout(f), r = heldRow(f, layout), numbers = neuronNumbers(f, layout, r);
    const row = layout.rows[r].label;
    if (!(point.column >= 0)) {
      const order = numbers.columns.map((x, c) => ({...x, c})).sort((x, y) => y.weight - x.weight).slice(0, 10);
      return {title: `“${row}” attends to`, head: ['token', 'score', 'weight'],
        rows: order.map((x) => [layout.columns[x.c].label, x.score.toFixed(2), number(x.weight)])};
    }
    const x = numbers.columns[point.column], d = point.d, lines = [`score ${x.score.toFixed(2)}`];
    if (d >= 0) lines.push(`number ${d}: q ${numbers.query[d].toFixed(2)} × k ${x.key[d].toFixed(2)} = ` +
      x.product[d].toFixed(2));
    return {title: `“${row}” → “${layout.columns[point.column].label}”`, big: number(x.weight), lines};
  },
};

// Which of the D numbers is at x; -1: none.
function dimension(layout, x) {
  for (const start of [layout.x.k, layout.x.product])
    if (x >= start && x < start + layout.strip) return Math.floor((x - start) / layout.strip * layout.D);
  return -1;
}
