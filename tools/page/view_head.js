// Head view: two columns of tokens, and a line from each that attends to what it attends to.
//
// Every view is { size(f), draw(paper, f), at(f, x, y), move(f, point, key), read(f, point) } of a figure
// f = { text, name, s: state, layer, places: heads shown, theme, colors, point, width }; a point is what is pointed at:
// at finds it under the pointer, move by an arrow key, read says its numbers. figures.js calls them.

const HEAD_TOP = 66;
const MOST_LINES = 2000; // at once: more take seconds, and nobody can tell them apart

function headLayout(f) {
  const {rows, columns} = rowsAndColumns(f.text, f.s);
  const longest = (list) => Math.max(40, ...list.map((unit) => textWidth(unit.label)));
  const line = Math.max(rows.length, columns.length) > 60 ? 17 : 22;
  const label = Math.ceil(Math.min(170, Math.max(longest(rows), longest(columns)))) + 12;
  const boxes = 108, beside = boxes + 46, gap = Math.max(140, Math.min(380, f.width - 2 * (label + beside) - 20));
  const left = Math.max(beside + label, (f.width - gap) / 2);
  return {rows, columns, line, label, boxes, gap, left, right: left + gap,
    width: Math.max(f.width, 2 * left + gap), height: HEAD_TOP + line * Math.max(rows.length, columns.length) + 44};
}

const headY = (layout, i) => HEAD_TOP + layout.line * (i + 0.5);

// Strength in steps, so that lines of a step are drawn at once.
const STEPS = 20;

const strength = (w) => ({alpha: Math.min(1, 0.03 + w), thick: 1 + 2 * w});

// The weight from which on at most `most` of the maps' lines are drawn: `min`, or more where there are too many.
function enough(maps, min, most, point) {
  const bins = new Uint32Array(1001), goal = (map, i) => !point ||
    (point.row >= 0 ? Math.floor(i / map.columns.length) === point.row : i % map.columns.length === point.column);
  for (const map of maps)
    for (let i = 0; i < map.w.length; i++) if (map.w[i] >= min && goal(map, i)) bins[Math.ceil(map.w[i] * 1000)]++;
  let count = 0, k = 1000;
  while (k >= 0 && count + bins[k] <= most) count += bins[k--];
  return k < 0 ? min : Math.max(min, k / 1000);
}

// A map's weights from `min` on as lines; place(r, c) is [x1, y1, x2, y2]; point: whose lines are
// drawn, if not all.
function drawLinks(paper, map, color, {min, point, place, weak = 1, scale = 1}) {
  const n = map.columns.length, bins = Array.from({length: STEPS + 1}, () => []);
  for (let r = 0; r < map.rows.length; r++) {
    if (point?.row >= 0 && point.row !== r) continue;
    for (let c = 0; c < n; c++) {
      const w = map.w[r * n + c];
      if (w < min || w === 0 || point?.column >= 0 && point.column !== c) continue;
      bins[Math.min(STEPS, Math.round(w * STEPS))].push(place(r, c));
    }
  }
  bins.forEach((list, k) => {
    const {alpha, thick} = strength(k / STEPS);
    if (list.length) paper.links(list, color, alpha * weak, thick * scale);
  });
}

// Beside each token on the other side: a box for each head, filled as its weight, and the mean as a number.
function drawBoxes(paper, f, layout) {
  const {point, places} = f, toRight = point.row >= 0, other = toRight ? layout.columns : layout.rows;
  const n = layout.columns.length, wide = Math.min(14, layout.boxes / Math.max(1, places.length));
  const all = wide * places.length, x = toRight ? layout.right + layout.label : layout.left - layout.label - all;
  other.forEach((_, i) => {
    const at = toRight ? point.row * n + i : i * n + point.column;
    const weights = places.map((a) => matrix(f.text, f.layer, a, f.s).w[at]);
    const y = headY(layout, i) - layout.line / 2 + 2;
    weights.forEach((w, k) => paper.rect(x + k * wide, y, wide - 1, layout.line - 4, headColor(places[k]), w));
    const mean = weights.reduce((sum, w) => sum + w, 0) / (weights.length || 1);
    if (mean >= 0.0005) paper.text(number(mean), toRight ? x + all + 6 : x - 6, headY(layout, i),
      {color: f.colors.soft, size: 11, align: toRight ? 'left' : 'right'});
  });
}

function drawHeadTokens(paper, f, layout) {
  const {point, colors} = f;
  const column = (list, x, align, held) => list.forEach((unit, i) => paper.text(fit(unit.label, layout.label - 10), x,
    headY(layout, i), {color: unit.label && isSpecial(unit.label) ? colors.soft : colors.text, align,
      weight: held === i ? 700 : 400}));
  column(layout.rows, layout.left - 7, 'right', point?.row);
  column(layout.columns, layout.right + 7, 'left', point?.column);
  const title = (text, x, align) => paper.text(text, x, HEAD_TOP - 12, {color: colors.soft, size: 11, align});
  const from = hasPair(f.text) && f.s.filter !== 'all' ? f.s.filter.toUpperCase() : '';
  title(from ? `${from[0]} attends` : 'attends', layout.left - 7, 'right');
  title(from ? `${from[1]} is attended to` : 'is attended to', layout.right + 7, 'left');
}

function pairNames(paper, f, layout) {
  const mark = (list, x) => {
    const second = list.findIndex((unit) => unit.second);
    if (second > 0) paper.rect(x, HEAD_TOP + layout.line * second, layout.label, 1, f.colors.faint);
  };
  if (!hasPair(f.text)) return;
  mark(layout.rows, layout.left - layout.label);
  mark(layout.columns, layout.right);
}

function drawCaption(paper, f, text) {
  const hidden = f.s.hide ? ' (some tokens hidden, rows renormalised)' : '';
  paper.text(fit(f.name + text + hidden, f.width - 24, 13, 600), 8, 14, {color: f.colors.text, weight: 600});
}

const headList = (places) => places.length === headNumbers.length ? `all ${places.length} heads`
  : places.length === 1 ? `head ${headNumbers[places[0]]}`
    : `heads ${places.map((a) => headNumbers[a]).sort((x, y) => x - y).join(', ')}`;

const headView = {
  size: (f) => headLayout(f),

  draw(paper, f) {
    const layout = headLayout(f);
    drawCaption(paper, f, `Layer ${f.layer}, ${f.places.length ? headList(f.places) : 'no head is on'}`);
    if (f.point) drawBoxes(paper, f, layout);
    const place = (r, c) => [layout.left, headY(layout, r), layout.right, headY(layout, c)];
    const weak = f.point ? 1 : f.places.length ** -0.35; // many heads over each other would all be black
    const maps = f.places.map((a) => matrix(f.text, f.layer, a, f.s));
    const min = enough(maps, f.s.min, MOST_LINES, f.point);
    maps.forEach((map, i) => drawLinks(paper, map, headColor(f.places[i]), {min, point: f.point, place, weak}));
    if (min > f.s.min) paper.text(`Only the strongest lines, weights over ${min.toFixed(3)}; point at a token for more.`,
      8, 34, {color: f.colors.soft, size: 11});
    drawHeadTokens(paper, f, layout);
    pairNames(paper, f, layout);
    const y = layout.height - 18, x = layout.left;
    paper.text('strength of a line: weight', x - 7, y, {color: f.colors.soft, size: 11, align: 'right'});
    [0.1, 0.25, 0.5, 1].forEach((w, i) => {
      const at = x + 12 + i * layout.gap / 4;
      paper.links([[at, y, at + 22, y]], f.colors.text, strength(w).alpha, strength(w).thick);
      paper.text(String(w), at + 27, y, {color: f.colors.soft, size: 11});
    });
  },

  at(f, x, y) {
    const layout = headLayout(f), i = Math.floor((y - HEAD_TOP) / layout.line);
    if (x < layout.left + layout.gap / 2) return i >= 0 && i < layout.rows.length ? {row: i} : null;
    return i >= 0 && i < layout.columns.length ? {column: i} : null;
  },

  move(f, point, key) {
    const {rows, columns} = headLayout(f);
    if (key === 'ArrowLeft') return {row: Math.min(point?.column ?? point?.row ?? 0, rows.length - 1)};
    if (key === 'ArrowRight') return {column: Math.min(point?.row ?? point?.column ?? 0, columns.length - 1)};
    const step = key === 'ArrowDown' ? 1 : -1, from = point?.row ?? point?.column ?? (step > 0 ? -1 : rows.length);
    const clamp = (list) => Math.max(0, Math.min(list.length - 1, from + step));
    return point?.column >= 0 ? {column: clamp(columns)} : {row: clamp(rows)};
  },

  read(f, point) {
    const {rows, columns} = headLayout(f), n = columns.length, toRight = point.row >= 0;
    const maps = f.places.map((a) => matrix(f.text, f.layer, a, f.s));
    const list = (toRight ? columns : rows).map((unit, i) => {
      const at = toRight ? point.row * n + i : i * n + point.column;
      const all = maps.map((map) => map.w[at]);
      const best = all.indexOf(Math.max(...all));
      return {label: unit.label, mean: all.reduce((sum, w) => sum + w, 0) / (all.length || 1), most: all[best] ?? 0,
        head: f.places[best]};
    }).sort((x, y) => y.mean - x.mean).slice(0, 10);
    return {
      title: toRight ? `“${rows[point.row].label}” attends to` : `“${columns[point.column].label}” is attended to by`,
      head: maps.length > 1 ? ['token', 'mean', 'most', 'head'] : ['token', 'weight'],
      rows: list.map((x) => maps.length > 1
        ? [x.label, number(x.mean), number(x.most), {head: x.head}] : [x.label, number(x.mean)]),
    };
  },
};
