// The effects of taking parts away: a heat map of heads, bars of tokens. All numbers are those of `bert ablate`'s JSON.
const VIEWS = {effects: 'Effects'};
const DEFAULTS = {
  of: 'embedding', // what was affected: log_prob, vector
  vector: -1,      // the token whose vector it is
  sort: 'text',    // tokens by masked, removed, received, rollout, norm
  theme: 'auto',   // light, dark
};
const TRIED = ['masked', 'removed'], SAID = ['received', 'rollout', 'norm'], NAMES = [...TRIED, ...SAID];
const edge = (name) => name === SAID[0] ? 'said' : ''; // the class of the first column of what attention said
const found = facts.ablation;
const SAID_COLOR = '#00957d';
const hasWords = found.head_log_probs !== undefined;
let state = readState(location.hash.slice(1));

const tokenLabel = (i) => shown(found.tokens[i]);
const short = (x) => x === null ? '–' : x === 0 ? '0' : String(Number(x.toPrecision(2)));
const exact = (x) => x === null ? 'not tried' : String(x);

function ofNow() {
  if (state.of === 'log_prob' && hasWords) return 'log_prob';
  return state.of === 'vector' && found.tokens[state.vector] !== undefined ? 'vector' : 'embedding';
}

// What silencing this head, or masking or removing this token, did to what is looked at.
function headEffect(layer, head) {
  const of = ofNow();
  if (of === 'vector') return found.head_token_effects[layer][head][state.vector];
  return (of === 'log_prob' ? found.head_log_probs : found.head_effects)[layer][head];
}

function tokenEffect(effect, how) {
  return ofNow() === 'vector' ? effect[how].tokens[state.vector] : effect[how][ofNow()];
}

const columnValue = (effect, name) => SAID.includes(name) ? effect.attention[name] : tokenEffect(effect, name);

function sorted() {
  const rows = [...found.token_effects], {sort} = state;
  if (!NAMES.includes(sort)) return rows;
  const size = (effect) => Math.abs(columnValue(effect, sort) ?? -1);
  return rows.sort((x, y) => size(y) - size(x));
}

// Ink grows as the square root. Log-probabilities have a sign: what is less and what is more are apart.
function colorOf(x, most) {
  const share = most > 0 ? Math.min(1, Math.abs(x) / most) : 0;
  if (ofNow() === 'log_prob') return signedColor(Math.sign(x) * Math.sqrt(share), themeNow());
  return weightColor(share, themeNow());
}

// Black or white, what is read more easily on it (W3C's relative luminance).
function inkOn(color) {
  const [r, g, b] = color.map((v) => (v / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19 ? '#10151c' : '#ffffff';
}

function what() {
  if (ofNow() === 'vector') return `the vector of “${tokenLabel(state.vector)}” (1 − cosine)`;
  return ofNow() === 'log_prob' ? 'the mean log-probability of the words' : 'the sentence vector (1 − cosine)';
}

const largest = (list) => list.reduce((most, x) => Math.max(most, Math.abs(x ?? 0)), 0);

function showHeads() {
  const layers = found.head_effects.length, heads = found.head_effects[0].length;
  const most = largest(found.head_effects.flatMap((row, l) => row.map((_, a) => headEffect(l, a))));
  const top = make('tr'), rows = found.head_effects.map((row, l) => {
    const line = make('tr');
    line.append(make('th', `layer ${l}`, {scope: 'row'}), ...row.map((_, a) => {
      const x = headEffect(l, a), color = colorOf(x ?? 0, most), cell = make('td', short(x), {tabindex: -1,
        'data-layer': l, 'data-head': a, 'aria-label': `layer ${l}, head ${a}: ${exact(x)}`});
      cell.style.background = css(color);
      cell.style.color = inkOn(color);
      return cell;
    }));
    return line;
  });
  top.append(make('th', 'head'), ...found.head_effects[0].map((_, a) => make('th', String(a), {scope: 'col'})));
  const body = make('tbody'), head = make('thead');
  head.append(top);
  body.append(...rows);
  $('head-map').replaceChildren(head, body);
  const silence = found.silence === 'zero' ? 'silent (its context is 0)' : 'blunt (it looks at all tokens alike)';
  $('heads-caption').textContent =
    `${layers} layers × ${heads} heads: what changes in ${what()} when one head is ${silence}`;
  showScale(most);
}

function showScale(most) {
  const ink = $('scale').getContext('2d'), low = ofNow() === 'log_prob' ? -most : 0;
  for (let i = 0; i < 256; i++) {
    ink.fillStyle = css(colorOf(low + (most - low) * i / 255, most));
    ink.fillRect(i, 0, 1, 1);
  }
  $('low').textContent = short(low);
  $('high').textContent = short(most);
}

function bar(x, most, color, label) {
  const box = make('div', undefined, {class: 'bar', title: `${label}: ${exact(x)}`}), ink = make('i');
  ink.style.width = `${most > 0 ? 70 * Math.abs(x ?? 0) / most : 0}%`;
  ink.style.background = color;
  box.append(ink, make('span', short(x)));
  return box;
}

function barColor(name, x) {
  if (SAID.includes(name)) return SAID_COLOR;
  return ofNow() === 'log_prob' ? css(signedColor(x < 0 ? -0.9 : 0.9, themeNow())) : css(SIGNED[themeNow()].plus);
}

function tokenRow(effect, most) {
  const held = ofNow() === 'vector' && state.vector === effect.index;
  const line = make('tr', undefined, {'data-token': effect.index, class: held ? 'held' : ''});
  line.append(make('th', tokenLabel(effect.index), {scope: 'row', tabindex: -1}), ...NAMES.map((name, k) => {
    const cell = make('td', undefined, {class: edge(name)}), x = columnValue(effect, name);
    cell.append(bar(x, most[k], barColor(name, x), name));
    return cell;
  }));
  return line;
}

// The rank correlations: beneath what attention said, with the effects of masking and of removing.
function rankRow(how) {
  const line = make('tr'), rho = found.rank_correlation[how];
  line.append(make('th', `ρ with ${how}`, {scope: 'row'}), make('td'), make('td'), ...SAID.map((name) =>
    make('td', rho[name] === null ? '–' : rho[name].toFixed(3),
      {class: edge(name), 'data-rank': `${how} ${name}`, title: exact(rho[name])})));
  return line;
}

function showTokens() {
  const head = make('thead'), body = make('tbody'), foot = make('tfoot'), top = make('tr');
  const most = NAMES.map((name) => largest(found.token_effects.map((effect) => columnValue(effect, name))));
  top.append(make('th', ''), ...NAMES.map((name) =>
    make('th', TRIED.includes(name) ? name : `attention: ${name}`, {scope: 'col', class: edge(name)})));
  head.append(top);
  body.append(...sorted().map((effect) => tokenRow(effect, most)));
  foot.append(...TRIED.map(rankRow));
  $('token-bars').replaceChildren(head, body, foot);
  $('tokens-caption').textContent = found.token_effects.length
    ? `What changes in ${what()} when one token is masked or removed, beside what attention said of it`
    : 'The text has no token that could be masked or removed';
}

function showReadout(title, big, lines, table = []) {
  const rows = table.map((cells) => {
    const row = make('tr');
    row.append(...cells.map((cell) => make('td', cell)));
    return row;
  }), list = make('table');
  list.append(...rows);
  $('readout').replaceChildren(make('h2', title), ...big === undefined ? [] : [make('p', big, {class: 'big'})],
    ...lines.map((line) => make('p', line)), ...rows.length ? [list] : []);
}

const strongest = (list) => list.map((x, i) => [i, x]).filter(([, x]) => x !== null)
  .sort((x, y) => y[1] - x[1]).slice(0, 6).map(([i, x]) => [tokenLabel(i), exact(x)]);

function readHead(layer, head) {
  const lines = [`sentence vector: ${exact(found.head_effects[layer][head])}`];
  if (hasWords) lines.push(`log-probability: ${exact(found.head_log_probs[layer][head])}`);
  lines.push('Tokens whose vectors change most:');
  showReadout(`Layer ${layer}, head ${head}`, short(headEffect(layer, head)), lines,
    strongest(found.head_token_effects[layer][head]));
}

function readToken(index) {
  const effect = found.token_effects.find((x) => x.index === index), lines = [];
  for (const how of TRIED) {
    lines.push(`${how}, sentence vector: ${exact(effect[how].embedding)}`);
    if (hasWords) lines.push(`${how}, log-probability: ${exact(effect[how].log_prob)}`);
  }
  for (const name of SAID) lines.push(`${name}: ${exact(effect.attention[name])}`);
  lines.push('Masked, it changes most:');
  showReadout(`“${tokenLabel(index)}”`, undefined, lines, strongest(effect.masked.tokens));
}

function readNothing() {
  showReadout('Effects', undefined,
    ['Point at a head or a token to read its numbers. Click a token for the effects on its vector.']);
}

function asCsv(rows) {
  const quote = (x) => typeof x === 'string' ? `"${x.replaceAll('"', '""')}"` : x ?? '';
  return rows.map((row) => row.map(quote).join(',')).join('\n') + '\n';
}

const headsCsv = () => asCsv([['layer', 'head', ofNow()],
  ...found.head_effects.flatMap((row, l) => row.map((_, a) => [l, a, headEffect(l, a)]))]);

const tokensCsv = () => asCsv([['index', 'token', ...TRIED, ...SAID],
  ...sorted().map((effect) => [effect.index, tokenLabel(effect.index), ...NAMES.map((name) => columnValue(effect, name))])]);

function show() {
  document.documentElement.dataset.theme = themeNow();
  $('of').value = ofNow();
  for (const name of ['sort', 'theme']) $(name).value = state[name];
  $('which').hidden = ofNow() !== 'vector';
  $('vector').value = String(state.vector);
  showHeads();
  showTokens();
  for (const id of ['head-map', 'token-bars']) document.querySelector(`#${id} [tabindex]`)?.setAttribute('tabindex', 0);
  readNothing();
}

// Where the keyboard is, as a selector that finds the place in tables made anew.
function focusNow() {
  const cell = document.activeElement?.closest('#head-map [tabindex], #token-bars [tabindex]');
  if (!cell) return null;
  const {layer, head} = cell.dataset;
  if (layer === undefined) return `[data-token="${cell.closest('tr').dataset.token}"] th`;
  return `[data-layer="${layer}"][data-head="${head}"]`;
}

function change(what) {
  const focus = focusNow();
  state = {...state, ...what};
  if (state.of !== 'vector') state.vector = -1;
  else if (found.tokens[state.vector] === undefined) state.vector = found.token_effects[0]?.index ?? 0;
  history.replaceState(null, '', `#${writeState(state)}`);
  show();
  if (focus) document.querySelector(focus)?.focus();
}

// ---- Pointer and keys. ----

function readCell(cell) {
  const row = cell.closest('tr');
  if (cell.dataset.layer !== undefined) readHead(+cell.dataset.layer, +cell.dataset.head);
  else if (row.dataset.token !== undefined) readToken(+row.dataset.token);
}

// The token again lets go of it.
const chooseToken = (index) =>
  change(ofNow() === 'vector' && state.vector === index ? {of: 'embedding'} : {of: 'vector', vector: index});

// Arrow keys walk among the cells that can have the focus, one of which Tab comes to.
function walk(event) {
  const by = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
  if (!by || !event.target.matches('[tabindex]')) return;
  const rows = [...event.currentTarget.tBodies[0].rows].map((row) => [...row.querySelectorAll('[tabindex]')]);
  const r = rows.findIndex((row) => row.includes(event.target)), c = rows[r].indexOf(event.target);
  const next = rows[r + by[0]]?.[c + by[1]];
  event.preventDefault();
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function listen(table) {
  table.addEventListener('keydown', walk);
  for (const when of ['focusin', 'pointerover'])
    table.addEventListener(when, ({target}) => { if (target.closest('tbody')) readCell(target.closest('td, th')); });
}

function onKey(event) {
  const row = event.target.closest?.('tr[data-token]');
  if (event.key === 'Enter' && row) chooseToken(+row.dataset.token);
  else if (event.key === 'Escape' && !event.target.closest('select')) change({of: 'embedding'});
}

function fillPage() {
  $('sentence').append(make('span', shown(found.text), found.pair === undefined ? {} : {class: 'first'}));
  if (found.pair !== undefined) $('sentence').append(make('span', shown(found.pair), {class: 'pair'}));
  $('origin').textContent = `Ablation in ${facts.model}: ${found.tokens.length} tokens`;
  $('vector').append(...found.tokens.map((_, i) => make('option', `${i}: ${tokenLabel(i)}`, {value: i})));
  if (!hasWords) $('of').querySelector('[value="log_prob"]').remove();
  $('source').textContent = 'All numbers are those of bert ablate --format json, in full. This page is one file and asks ' +
    `the network for nothing. Weights of the model: ${facts.weights_hash}, numerics ${facts.numerics}.`;
  document.title = `Ablation: ${shown(found.text).slice(0, 300)}`;
}

fillPage();
for (const name of ['of', 'sort', 'theme']) $(name).addEventListener('change', () => change({[name]: $(name).value}));
$('vector').addEventListener('change', () => change({vector: +$('vector').value}));
$('copy-heads').addEventListener('click', () => copyText(headsCsv()));
$('copy-tokens').addEventListener('click', () => copyText(tokensCsv()));
$('token-bars').addEventListener('click', (event) => {
  const row = event.target.closest('tr[data-token]');
  if (row) chooseToken(+row.dataset.token);
});
listen($('head-map'));
listen($('token-bars'));
document.addEventListener('keydown', onKey);
followTheme(show);
window.addEventListener('hashchange', () => { state = readState(location.hash.slice(1)); show(); });
show();
