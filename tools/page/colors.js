// Colours. Heads: twelve that stay apart for every kind of colour vision (tests/test_page_colors.py measures it), those
// that are furthest from each other first; numbers: one hue for weights, orange and blue for signed values.
const HEAD_COLORS = ['#0000ff', '#ee4477', '#eeaa22', '#881188', '#bb66ff', '#00ccbb', '#bbbb66', '#555522', '#99aaee',
  '#7700bb', '#997700', '#990055'];
const headColor = (a) => HEAD_COLORS[a % HEAD_COLORS.length];

const RAMPS = {
  light: ['#ffffff', '#d3e4f5', '#8fbfe3', '#3f8fcb', '#14599f', '#0a2a5c'],
  dark: ['#171b21', '#17324f', '#1c5688', '#2f86c6', '#7cc0f0', '#f0f8ff'],
};
const SIGNED = {
  light: {zero: [255, 255, 255], minus: [196, 88, 0], plus: [0, 92, 184]},
  dark: {zero: [23, 27, 33], minus: [255, 150, 60], plus: [90, 175, 255]},
};

const parse = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const between = (x, y, t) => x.map((v, i) => Math.round(v + (y[i] - v) * t));

// 256 colours [r, g, b] for √weight from 0 to 1: ink grows as the square root, or long texts would be white.
function ramp(theme) {
  return remember(`ramp ${theme}`, () => {
    const stops = RAMPS[theme].map(parse), n = stops.length - 1;
    return Array.from({length: 256}, (_, i) => {
      const x = i / 255 * n, k = Math.min(Math.floor(x), n - 1);
      return between(stops[k], stops[k + 1], x - k);
    });
  });
}

const weightColor = (w, theme) => ramp(theme)[Math.min(255, Math.round(255 * Math.sqrt(w)))];

// value from -1 to 1
function signedColor(value, theme) {
  const {zero, minus, plus} = SIGNED[theme];
  return between(zero, value < 0 ? minus : plus, Math.min(1, Math.abs(value)));
}

const css = ([r, g, b]) => `rgb(${r},${g},${b})`;

// The colours of text and lines in pictures, as the style sheet has them.
function pageColors() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(['paper', 'edge', 'text', 'soft', 'faint', 'accent'].map((name) =>
    [name, style.getPropertyValue(`--${name}`).trim()]));
}
