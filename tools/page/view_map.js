// Heat map: one head, rows attend, columns are attended to.

function mapLayout(f) {
  const {rows, columns} = rowsAndColumns(f.text, f.s);
  const longest = (list) => Math.ceil(Math.min(112, Math.max(30, ...list.map((unit) => textWidth(unit.label, 12))))) + 8;
  const label = longest(rows) + 8, top = longest(columns) + 44, n = Math.max(columns.length, rows.length * 0.8);
  const cell = Math.max(2, Math.min(44, Math.floor((f.width - label - 40) / Math.max(1, n))));
  const width = Math.max(f.width, label + columns.length * cell + 40);
  const left = Math.floor((width + label - 20 - columns.length * cell) / 2);
  return {rows, columns, label, left, top, cell, width, height: top + rows.length * cell + 52};
}

// Labels where there is room: every one, or every n-th.
function drawMapLabels(paper, f, layout) {
  const every = Math.ceil(13 / layout.cell), {colors, point} = f;
  const style = (i, held) =>
    ({size: 12, color: held === i ? colors.text : colors.soft, weight: held === i ? 700 : 400});
  const shows = (i, held) => i === held || i % every === 0 && !(every > 1 && Math.abs(i - held) < every);
  layout.rows.forEach((unit, i) => {
    if (shows(i, point?.row)) paper.text(fit(unit.label, layout.label - 12, 12), layout.left - 7,
      layout.top + layout.cell * (i + 0.5), {...style(i, point?.row), align: 'right'});
  });
  layout.columns.forEach((unit, i) => {
    if (shows(i, point?.column)) paper.text(fit(unit.label, layout.top - 48, 12),
      layout.left + layout.cell * (i + 0.5), layout.top - 7, {...style(i, point?.column), turn: -90});
  });
}

function drawMapNumbers(paper, f, layout, map) {
  const n = layout.columns.length;
  map.w.forEach((w, i) => {
    const strong = Math.sqrt(w) > 0.55, dark = f.theme === 'dark';
    if (w >= 0.005) paper.text(w.toFixed(2).replace(/^0/, ''), layout.left + layout.cell * (i % n + 0.5),
      layout.top + layout.cell * (Math.floor(i / n) + 0.5),
      {size: 11, align: 'center', color: strong === dark ? '#10151c' : dark ? '#dfe7f0' : '#fff'});
  });
}

const mapView = {
  size: (f) => mapLayout(f),

  draw(paper, f) {
    const layout = mapLayout(f), {left, top, cell, rows, columns} = layout, n = columns.length;
    const map = matrix(f.text, f.layer, f.places[0], f.s);
    drawCaption(paper, f, `Layer ${f.layer}, ${headList(f.places)}: each row attends to the columns`);
    paper.image(pixels(rows.length, n, (r, c) => weightColor(map.w[r * n + c], f.theme)), left, top, cell * n,
      cell * rows.length);
    if (cell >= 30) drawMapNumbers(paper, f, layout, map);
    paper.frame(left, top, cell * n, cell * rows.length, f.colors.edge);
    drawMapLabels(paper, f, layout);
    if (f.point) {
      paper.frame(left, top + cell * f.point.row, cell * n, cell, f.colors.faint, 0.75);
      paper.frame(left + cell * f.point.column, top, cell, cell * rows.length, f.colors.faint, 0.75);
      paper.frame(left + cell * f.point.column, top + cell * f.point.row, cell, cell, f.colors.accent, 2);
    }
    weightLegend(paper, left, layout.height - 34, Math.max(200, Math.min(320, cell * n)), f);
  },

  at(f, x, y) {
    const layout = mapLayout(f), row = Math.floor((y - layout.top) / layout.cell);
    const column = Math.floor((x - layout.left) / layout.cell);
    const inside = row >= 0 && row < layout.rows.length && column >= 0 && column < layout.columns.length;
    return inside ? {row, column} : null;
  },

  move(f, point, key) {
    const {rows, columns} = mapLayout(f), clamp = (i, list) => Math.max(0, Math.min(list.length - 1, i));
    if (!point) return {row: 0, column: 0};
    return {row: clamp(point.row + (key === 'ArrowDown') - (key === 'ArrowUp'), rows),
      column: clamp(point.column + (key === 'ArrowRight') - (key === 'ArrowLeft'), columns)};
  },

  read(f, point) {
    const map = matrix(f.text, f.layer, f.places[0], f.s), w = map.w[point.row * map.columns.length + point.column];
    const lines = [`layer ${f.layer}, ${headList(f.places)}`];
    if (f.s.hide) lines.push(`${number(w * map.share[point.row])} before tokens were hidden`);
    if (thinned && w === 0) lines.push('0, or too small to be kept in this page');
    return {title: `“${map.rows[point.row].label}” → “${map.columns[point.column].label}”`, big: number(w), lines};
  },
};
