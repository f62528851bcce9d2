// The pictures: one, or two beside each other. What is drawn follows from the state and from where the pointer is.
const VIEW_OF = {head: headView, model: modelView, neuron: neuronView, map: mapView};
let state = readState(location.hash.slice(1) || facts.view || '');
let figures = []; // { text, canvas, hover, ready: rows of the model view that are made }

const placeOf = (head) => Math.max(0, headNumbers.indexOf(head));
const layerNow = () => layerNumbers.includes(state.layer) ? state.layer : layerNumbers[0];
// The enlarged head of the model view: { layer, place }, or null.
function opened() {
  const [layer, head] = state.open.split('.').map(Number);
  if (state.view !== 'model' || !layerNumbers.includes(layer) || !headNumbers.includes(head)) return null;
  return {layer, place: placeOf(head)};
}

function headsNow() {
  if (state.view !== 'head') return [placeOf(state.head)];
  const on = new Set(state.heads.split('.').filter(Boolean).map(Number));
  return headNumbers.map((_, a) => a).filter((a) => state.heads === 'all' || on.has(headNumbers[a]));
}

const viewNow = () => opened() ? headView : VIEW_OF[state.view];

const textsNow = () => {
  const there = (t) => t >= 0 && t < facts.texts.length, first = there(state.text) ? state.text : 0;
  return there(state.beside) ? [first, state.beside] : [first];
};

// The point that the state holds, if the picture of this text has it.
function heldPoint(text) {
  if (!state.token || viewNow() === modelView) return null;
  const [row, column] = state.token.split('.').map((x) => x === '' ? undefined : Number(x));
  const {rows, columns} = rowsAndColumns(text, state.view === 'neuron' ? {...state, words: 0} : state);
  if (row !== undefined && !(row < rows.length) || column !== undefined && !(column < columns.length)) return null;
  if (state.view === 'map') return row !== undefined && column !== undefined ? {row, column} : null;
  return row !== undefined ? {row} : column !== undefined ? {column} : null;
}

const pointText = (point) => `${point.row ?? ''}${point.column !== undefined ? `.${point.column}` : ''}`;

// What a view needs to know.
function context(figure, theme = themeNow()) {
  const open = opened(), stage = document.getElementById('stage').clientWidth, n = textsNow().length;
  return {text: figure.text, name: n > 1 ? `Text ${figure.text}: ` : '', s: state, theme, colors: pageColors(), point: figure.hover ?? heldPoint(figure.text),
    layer: open?.layer ?? layerNow(), places: open ? [open.place] : headsNow(), rows: figure.ready,
    width: Math.max(n > 1 ? 460 : 560, Math.floor((stage - 16 * (n - 1)) / n) - 18)};
}

function drawFigure(figure) {
  const f = context(figure), view = viewNow(), {width, height} = view.size(f);
  const paper = new CanvasPaper(figure.canvas, width, height, f.colors.paper);
  view.draw(paper, f);
  if (figure.ready >= layerNumbers.length) figure.ready = undefined;
  else if (figure.ready) requestAnimationFrame(() => { figure.ready++; drawFigure(figure); });
  figure.paper = paper;
  figure.clean = view.mark && !figure.ready ? paper.copy() : null;
  if (view.mark) view.mark(paper, f);
}

// The pointer has moved. A view that has `mark` is expensive to draw: its picture stays, only the mark moves.
function drawPoint(figure) {
  if (!figure.clean) return drawFigure(figure);
  figure.paper.paste(figure.clean);
  return viewNow().mark(figure.paper, context(figure));
}

// At most one drawing a frame, always the newest.
let waiting = null;
function soon(work) {
  if (!waiting) requestAnimationFrame(() => { const now = waiting; waiting = null; now(); });
  waiting = work;
}

function makeFigures() {
  const stage = document.getElementById('stage');
  const focused = figures.findIndex((figure) => figure.canvas === document.activeElement);
  stage.replaceChildren();
  figures = textsNow().map((text) => {
    const box = document.createElement('figure'), canvas = document.createElement('canvas');
    canvas.tabIndex = 0;
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `${VIEWS[state.view]} of text ${text}; arrow keys point, numbers are read out`);
    box.append(canvas);
    stage.append(box);
    const figure = {text, canvas, hover: null, ready: undefined};
    if (viewNow() === modelView && !asLines(figure)) figure.ready = 1;
    listen(figure);
    return figure;
  });
  figures[focused]?.canvas.focus();
}

function samePoint(x, y) {
  return JSON.stringify(x) === JSON.stringify(y);
}

function pointAt(figure, point) {
  if (samePoint(figure.hover, point)) return;
  figure.hover = point;
  soon(() => drawPoint(figure));
  readOut(figure);
}

// A click or Enter: hold what is pointed at, let go of what was held, or enlarge a head.
function choose(figure) {
  const point = figure.hover;
  if (!point) return change({token: ''});
  if (point.layer !== undefined) return change({open: `${point.layer}.${headNumbers[point.place]}`});
  const text = pointText(state.view === 'neuron' ? {row: point.row} : point);
  return change({token: state.token === text ? '' : text});
}

function listen(figure) {
  const {canvas} = figure;
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    pointAt(figure, viewNow().at(context(figure), event.clientX - box.left, event.clientY - box.top));
  });
  canvas.addEventListener('pointerleave', () => pointAt(figure, null));
  canvas.addEventListener('click', () => choose(figure));
  canvas.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') choose(figure);
    else if (!event.key.startsWith('Arrow')) return;
    else pointAt(figure, viewNow().move(context(figure), figure.hover ?? heldPoint(figure.text), event.key));
    event.preventDefault();
  });
}
