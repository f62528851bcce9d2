// From tokens to what is shown: pieces joined to words, tokens hidden, one sentence or both.

const isSpecial = (token) => /^\[(CLS|SEP|PAD)\]$/.test(token);
const isPunctuation = (token) => /^[\p{P}\p{S}]+$/u.test(token) && !isSpecial(token);

// One row or column each: { label, tokens: [index…], second: of sentence B, hidden }.
function units(text, s) {
  return remember(`units ${text} ${s.words} ${s.hide}`, () => {
    const {tokens, count, second} = facts.texts[text], all = [];
    for (let i = 0; i < count; i++) {
      const token = tokens?.[i] ?? `#${i}`, inB = second >= 0 && i >= second, last = all.at(-1);
      if (s.words && token.startsWith('##') && last && last.second === inB && !isSpecial(last.label)) {
        last.label += shown(token.slice(2));
        last.tokens.push(i);
      } else {
        all.push({label: shown(token), tokens: [i], second: inB});
      }
    }
    for (const unit of all)
      unit.hidden = s.hide.includes('special') && isSpecial(unit.label) ||
        s.hide.includes('punctuation') && isPunctuation(unit.label);
    return all;
  });
}

const hasPair = (text) => facts.texts[text].second >= 0;

function rowsAndColumns(text, s) {
  const left = units(text, s).filter((unit) => !unit.hidden), filter = hasPair(text) ? s.filter : 'all';
  const side = (which) => filter === 'all' ? left : left.filter((unit) => unit.second === (filter[which] === 'b'));
  return {rows: side(0), columns: side(1)};
}

// The map of the head at place `a`: { rows, columns, w: [rows, columns], share: [rows] }. share is what was left of
// each row after hiding, by which the row was divided: w·share is the weight before.
function matrix(text, layer, a, s) {
  return rememberFew(`${text} ${layer} ${a} ${s.words} ${s.hide} ${s.filter}`, () => {
    const {rows, columns} = rowsAndColumns(text, s);
    const T = facts.texts[text].count, n = columns.length, codes = weightCodes(text, layer), start = a * T * T;
    const w = new Float32Array(rows.length * n), share = new Float32Array(rows.length).fill(1);
    const column = new Int32Array(T).fill(-1), visible = new Uint8Array(T); // of each token
    columns.forEach((unit, c) => unit.tokens.forEach((j) => { column[j] = c; }));
    for (const unit of units(text, s)) for (const j of unit.tokens) visible[j] = unit.hidden ? 0 : 1;
    rows.forEach((row, r) => {
      let left = 0;
      for (const i of row.tokens)
        for (let j = 0, at = start + i * T; j < T; j++, at++) {
          const x = WEIGHT[codes[at]];
          if (column[j] >= 0) w[r * n + column[j]] += x;
          if (visible[j]) left += x;
        }
      if (s.hide) share[r] = left / row.tokens.length;
      const by = s.hide ? left || 1 : row.tokens.length;
      if (by !== 1) for (let c = 0; c < n; c++) w[r * n + c] /= by;
    });
    return {rows, columns, w, share};
  });
}

// What remained of the rows that are shown, over the given heads: a number from 0 to 1.
function meanShare(text, layer, places, s) {
  const all = places.flatMap((a) => Array.from(matrix(text, layer, a, s).share));
  return all.reduce((sum, x) => sum + x, 0) / (all.length || 1);
}

function asCsv(map) {
  const quote = (x) => `"${x.replaceAll('"', '""')}"`, n = map.columns.length;
  const lines = map.rows.map((row, r) =>
    [quote(row.label), ...Array.from(map.w.subarray(r * n, (r + 1) * n), (x) => x.toFixed(4))].join(','));
  return [['"from \\ to"', ...map.columns.map((x) => quote(x.label))].join(','), ...lines].join('\n') + '\n';
}

const number = (x) => x.toFixed(3);
