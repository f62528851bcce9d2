// The numbers that the page carries. tools/output/page_code.h says how they are written.
const layerNumbers = facts.texts[0].layers.map((x) => x.layer);
const headNumbers = facts.heads;
const thinned = facts.keep > 0 || facts.min_weight > 0;

// The weight of a byte.
const WEIGHT = Float32Array.from({length: 256}, (_, c) => (c / 255) ** 2);

// The same for what is large and quickly made again: only the newest are kept.
const few = new Map();

function rememberFew(key, make) {
  const value = few.get(key) ?? make();
  few.delete(key);
  few.set(key, value);
  if (few.size > 40) few.delete(few.keys().next().value);
  return value;
}

// The bytes of a script element, which is not needed afterwards; null: there is none.
function takeBytes(id) {
  const element = document.getElementById(id);
  if (!element) return null;
  const text = element.textContent;
  element.remove();
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// Rows of { u16 count, count × { u16 column, u8 code } } as rows of T codes.
function thicken(bytes, rows, T) {
  const codes = new Uint8Array(rows * T);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    const count = bytes[at] | bytes[at + 1] << 8;
    at += 2;
    for (let k = 0; k < count; k++, at += 3) codes[row * T + (bytes[at] | bytes[at + 1] << 8)] = bytes[at + 2];
  }
  return codes;
}

// Codes of all heads of a layer: [A, T, T].
function weightCodes(text, layer) {
  return remember(`codes ${text} ${layer}`, () => {
    const T = facts.texts[text].count, bytes = takeBytes(`${text}.attentions.${layer}`);
    return thinned ? thicken(bytes, headNumbers.length * T, T) : bytes;
  });
}

// Queries or keys of one head: { D, at: Float32Array [T, D] }; null: the page does not have them.
function vectors(what, text, layer, a) {
  const bytes = remember(`${what} ${text} ${layer}`, () => takeBytes(`${text}.${what}.${layer}`));
  if (!bytes) return null;
  const T = facts.texts[text].count, step = bytes.length / (headNumbers.length * T), D = step - 4;
  const look = new DataView(bytes.buffer, bytes.byteOffset), at = new Float32Array(T * D);
  for (let i = 0; i < T; i++) {
    const row = (a * T + i) * step, scale = look.getFloat32(row, true);
    for (let d = 0; d < D; d++) at[i * D + d] = look.getInt8(row + 4 + d) * scale;
  }
  return {D, at};
}

const hasVectors = document.querySelector('script[id*=".query."]') !== null;

// Mean entropy and distance of a head.
function statistic(name, text, layer, a) {
  return facts.texts[text].layers.find((x) => x.layer === layer)[name][a];
}

// Places of the heads in `headNumbers`, sorted.
function sortedHeads(sort, text, layer) {
  const places = headNumbers.map((_, a) => a);
  if (sort !== 'entropy' && sort !== 'distance') return places;
  return places.sort((a, b) => statistic(sort, text, layer, a) - statistic(sort, text, layer, b));
}
