// Controls, keys, the address, and the words beside the pictures.
function change(what) {
  const before = state;
  state = {...state, ...what};
  const moved = ['view', 'words', 'hide', 'filter', 'text', 'open'].some((name) => state[name] !== before[name]);
  if (moved && what.token === undefined) state.token = '';
  if (state.view !== before.view && what.open === undefined) state.open = '';
  history.replaceState(null, '', `#${writeState(state)}`);
  show();
}

// Heads as chips: toggled in the head view, one of them chosen in the views of one head.
function showHeads() {
  const several = state.view === 'head', on = new Set(headsNow()), text = textsNow()[0];
  const chips = sortedHeads(state.sort, text, layerNow()).map((a) => {
    const chip = make('button', String(headNumbers[a]), {type: 'button', class: 'head', 'aria-pressed': on.has(a),
      'aria-label': `Head ${headNumbers[a]}`, title: ['entropy', 'distance'].map((name) =>
        `${name} ${statistic(name, text, layerNow(), a).toFixed(2)}`).join(', ')});
    chip.style.setProperty('--head', headColor(a));
    if (state.sort !== 'number') chip.append(make('small', statistic(state.sort, text, layerNow(), a).toFixed(2)));
    chip.addEventListener('click', (event) => chooseHead(a, several && !event.shiftKey));
    return chip;
  });
  // The chips are new ones: whoever went to one with the keyboard is still there.
  const focused = document.activeElement?.getAttribute('aria-label');
  $('heads').replaceChildren(...chips);
  chips.find((chip) => chip.getAttribute('aria-label') === focused)?.focus();
  $('heads-label').textContent = several ? 'Heads' : 'Head';
}

function chooseHead(a, toggle) {
  const head = headNumbers[a];
  if (state.view !== 'head') return change({head});
  const on = new Set(headsNow().map((place) => headNumbers[place]));
  if (!toggle) return change({head, heads: on.size === 1 && on.has(head) ? 'all' : String(head)});
  if (!on.delete(head)) on.add(head);
  const list = headNumbers.filter((x) => on.has(x));
  return change({heads: list.length === headNumbers.length ? 'all' : list.join('.') || 'none'});
}

function showControls() {
  const texts = textsNow(), pair = texts.some(hasPair), open = opened();
  for (const button of $('views').children) button.setAttribute('aria-selected', button.dataset.view === state.view);
  for (const part of document.querySelectorAll('[data-for]'))
    part.hidden = !part.dataset.for.split(' ').includes(state.view);
  for (const part of document.querySelectorAll('[data-pair]')) part.hidden = !pair;
  for (const part of document.querySelectorAll('[data-several]')) part.hidden = facts.texts.length < 2;
  $('layer').value = layerNow();
  $('layer-before').disabled = layerNow() === layerNumbers[0];
  $('layer-after').disabled = layerNow() === layerNumbers.at(-1);
  for (const name of ['sort', 'filter', 'min', 'text', 'beside', 'theme']) $(name).value = state[name];
  $('words').checked = state.words;
  $('hide-special').checked = state.hide.includes('special');
  $('hide-punctuation').checked = state.hide.includes('punctuation');
  $('back').hidden = !open;
  $('lines').hidden = viewNow() !== headView && !(viewNow() === modelView && texts.some((text) => asLines({text})));
  document.documentElement.dataset.theme = themeNow();
}

function showSentence() {
  const label = (text) => text.text ?? (text.tokens ?? [`${text.count} tokens`]).join(' ');
  $('sentence').replaceChildren(...textsNow().flatMap((t) => {
    const text = facts.texts[t], paired = text.pair !== undefined;
    return [make('span', shown(label(text)), paired ? {class: 'first'} : {}),
      ...paired ? [make('span', shown(text.pair), {class: 'pair'})] : []];
  }).flatMap((span, i) => i && span.className !== 'pair' ? [make('span', ' | '), span] : [span]));
  const tokens = textsNow().map((t) => facts.texts[t].count).join(' | ');
  $('origin').textContent =
    `Attention in ${facts.model}: ${layerNumbers.length} layers × ${headNumbers.length} heads, ${tokens} tokens`;
}

function showNotes() {
  const notes = [], f = context(figures[0]), all = state.view === 'model' ? [] : f.places;
  const kept = [facts.keep ? `the ${facts.keep} largest weights of each row` : '',
    facts.min_weight ? `weights from ${facts.min_weight} on` : ''].filter(Boolean);
  if (thinned) notes.push(`Thinned: this page has only ${kept.join(', and of these ')}. Others are drawn as 0.`);
  if (state.hide) notes.push('Renormalised: with tokens hidden, each row is divided by what remains of it' +
    (all.length ? `, here ${Math.round(100 * meanShare(f.text, f.layer, all, state))} % on average.` : '.'));
  if (state.words && state.view !== 'neuron') notes.push('Words: columns are sums over pieces, rows are means.');
  for (const t of textsNow()) if (facts.texts[t].truncated)
    notes.push(`The text was longer: ${facts.texts[t].truncated} tokens were cut off.`);
  $('notes').replaceChildren(...notes.map((note) => make('span', note, {class: 'note'})));
}

const HINTS = {
  head: 'Point at a token on either side. Click holds it.',
  model: 'Point at a head to see its numbers. Click enlarges it.',
  neuron: 'Point at a token on the left to choose whose weights are worked out, and at a row to see its numbers.',
  map: 'Point at a cell. Click holds it.',
};

function readOut(figure) {
  const f = context(figure), out = $('readout'), parts = [];
  const said = f.point ? viewNow().read(f, f.point) : {title: VIEWS[state.view], lines: [HINTS[opened() ? 'head' : state.view]]};
  if (!f.point && viewNow() !== modelView) {
    const order = sortedHeads(state.sort, f.text, f.layer).filter((a) => f.places.includes(a));
    const value = (name, a) => statistic(name, f.text, f.layer, a).toFixed(2);
    said.head = ['head', 'entropy', 'distance'];
    said.rows = order.map((a) => [{head: a}, value('entropy', a), value('distance', a)]);
  }
  parts.push(make('h2', said.title));
  if (said.big) parts.push(make('p', said.big, {class: 'big'}));
  for (const line of said.lines ?? []) parts.push(make('p', line));
  if (said.rows) parts.push(readTable(said));
  out.replaceChildren(...parts);
}

function readTable({head, rows}) {
  const table = make('table'), line = (cells, tag) => {
    const row = make('tr');
    row.append(...cells.map((cell) => {
      if (typeof cell === 'string') return make(tag, cell);
      const td = make(tag), dot = make('span', '', {class: 'dot'});
      dot.style.background = headColor(cell.head);
      td.append(dot, String(headNumbers[cell.head]));
      return td;
    }));
    return row;
  };
  table.append(line(head, 'th'), ...rows.map((row) => line(row, 'td')));
  return table;
}

function show() {
  showControls();
  showHeads();
  showSentence();
  makeFigures();
  showNotes();
  figures.forEach(drawFigure);
  readOut(figures[0]);
}

function step(list, now, by) {
  return list[Math.max(0, Math.min(list.length - 1, list.indexOf(now) + by))];
}

const stepLayer = (by) => change({layer: step(layerNumbers, layerNow(), by)});

function stepHead(by) {
  const order = sortedHeads(state.sort, textsNow()[0], layerNow()).map((a) => headNumbers[a]);
  const head = step(order, headNumbers[placeOf(state.head)], by);
  change(state.view === 'head' ? {head, heads: String(head)} : {head});
}

const KEYS = {
  ',': () => stepLayer(-1), '.': () => stepLayer(1), '[': () => stepHead(-1), ']': () => stepHead(1),
  '1': () => change({view: 'head'}), '2': () => change({view: 'model'}), '3': () => change({view: 'neuron'}),
  '4': () => change({view: 'map'}), Escape: () => change({token: '', open: ''}),
  '?': () => { $('help').open = !$('help').open; },
};

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest('select, input[type="text"]')) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}

function hideNow() {
  return ['special', 'punctuation'].filter((what) => $(`hide-${what}`).checked).join('.');
}

function fillControls() {
  $('views').append(...Object.entries(VIEWS).map(([view, name], i) => {
    const button = make('button', name, {type: 'button', role: 'tab', 'data-view': view, title: `Key ${i + 1}`});
    button.addEventListener('click', () => change({view}));
    return button;
  }));
  $('layer').append(...layerNumbers.map((layer) => make('option', String(layer))));
  const name = (text, t) => `${t}: ${fit(shown(text.text ?? text.tokens?.join(' ') ?? ''), 160)}`;
  $('text').append(...facts.texts.map((text, t) => make('option', name(text, t), {value: t})));
  $('beside').append(make('option', 'nothing', {value: -1}),
    ...facts.texts.map((text, t) => make('option', name(text, t), {value: t})));
  $('source').textContent = 'Weights are stored in 8 bits, as 255·√w rounded: what is shown is within 1/255 of what ' +
    'was computed, small weights much closer. Queries and keys have 8 bits beside a scale for each row. This page is ' +
    `one file and asks the network for nothing. Weights of the model: ${facts.weights_hash}, numerics ${facts.numerics}.`;
}

function connectControls() {
  $('layer').addEventListener('change', () => change({layer: +$('layer').value}));
  $('layer-before').addEventListener('click', () => stepLayer(-1));
  $('layer-after').addEventListener('click', () => stepLayer(1));
  $('heads-all').addEventListener('click', () => change({heads: 'all'}));
  $('heads-none').addEventListener('click', () => change({heads: 'none'}));
  for (const name of ['sort', 'filter', 'theme'])
    $(name).addEventListener('change', () => change({[name]: $(name).value}));
  for (const name of ['min', 'text', 'beside'])
    $(name).addEventListener('change', () => change({[name]: +$(name).value}));
  $('words').addEventListener('change', () => change({words: +$('words').checked}));
  for (const what of ['special', 'punctuation'])
    $(`hide-${what}`).addEventListener('change', () => change({hide: hideNow()}));
  $('back').addEventListener('click', () => change({open: ''}));
  $('copy').addEventListener('click', () => copyText(currentCsv()));
  $('svg').addEventListener('click', () => save(new Blob([currentSvg()], {type: 'image/svg+xml'}), 'svg'));
  $('png').addEventListener('click', async () => save(await currentPng(), 'png'));
}

fillControls();
connectControls();
document.addEventListener('keydown', onKey);
followTheme(show);
window.addEventListener('resize', () => soon(() => figures.forEach(drawFigure)));
window.addEventListener('hashchange', () => { state = readState(location.hash.slice(1)); show(); });
show();
document.title = `Attention: ${fit($('sentence').textContent, 300)}`;
