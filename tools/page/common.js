// What both pages have: their data, elements, the address, the theme, the clipboard.
const facts = JSON.parse(document.getElementById('facts').textContent);

const $ = (id) => document.getElementById(id);

function make(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// Characters that would not show, or would turn the line around, as a dot.
const shown = (token) => token.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f]/g, '·');

const cache = new Map();

function remember(key, make) {
  if (!cache.has(key)) cache.set(key, make());
  return cache.get(key);
}

// The address has a view, then pairs of what is not as in DEFAULTS: "map,layer=3,head=5".
function readState(text) {
  const [view, ...pairs] = text.split(',');
  const state = {view: Object.hasOwn(VIEWS, view) ? view : Object.keys(VIEWS)[0], ...DEFAULTS};
  for (const pair of pairs) {
    const [name, value = ''] = pair.split('=');
    if (!Object.hasOwn(DEFAULTS, name)) continue;
    if (typeof DEFAULTS[name] !== 'number') state[name] = value;
    else if (value !== '' && Number.isFinite(+value)) state[name] = +value;
  }
  return state;
}

function writeState(state) {
  const changed = Object.keys(DEFAULTS).filter((name) => state[name] !== DEFAULTS[name]);
  return [state.view, ...changed.map((name) => `${name}=${state[name]}`)].join(',');
}

const darkSystem = matchMedia('(prefers-color-scheme: dark)');
let printing = false; // paper is white
const themeNow = () =>
  !printing && (state.theme === 'dark' || state.theme !== 'light' && darkSystem.matches) ? 'dark' : 'light';

// Calls show whenever the theme has changed by itself.
function followTheme(show) {
  darkSystem.addEventListener('change', show);
  for (const when of ['beforeprint', 'afterprint'])
    window.addEventListener(when, () => { printing = when === 'beforeprint'; show(); });
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page opened from a file may not have the clipboard; a selection still copies.
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}
