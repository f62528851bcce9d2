// Two kinds of paper with the same pens: a canvas for the screen and PNG, and a string for SVG. Views draw on either.
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const ruler = document.createElement('canvas').getContext('2d');

function textWidth(text, size = 13, weight = 400) {
  ruler.font = `${weight} ${size}px ${FONT}`;
  return ruler.measureText(text).width;
}

// The text, with its end cut off where it is wider than `width`.
function fit(text, width, size = 13, weight = 400) {
  if (textWidth(text, size, weight) <= width) return text;
  const letters = Array.from(text.slice(0, 1000)), start = (n) => `${letters.slice(0, n).join('')}…`;
  let low = 1, high = letters.length; // the start of `low` letters fits, or is the least there can be
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (textWidth(start(middle), size, weight) <= width) low = middle;
    else high = middle;
  }
  return start(low);
}

// A picture of rows × columns pixels; color(r, c) is [r, g, b].
function pixels(rows, columns, color) {
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const ink = canvas.getContext('2d'), data = ink.createImageData(canvas.width, canvas.height);
  for (let r = 0, at = 0; r < rows; r++)
    for (let c = 0; c < columns; c++, at += 4) {
      const [red, green, blue] = color(r, c);
      data.data[at] = red;
      data.data[at + 1] = green;
      data.data[at + 2] = blue;
      data.data[at + 3] = 255;
    }
  ink.putImageData(data, 0, 0);
  return canvas;
}

class CanvasPaper {
  // Large pictures get fewer pixels: browsers have limits.
  constructor(canvas, width, height, background) {
    const density = Math.min(Math.max(window.devicePixelRatio, 2), Math.max(1, 9000 / Math.max(width, height)));
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    this.ink = canvas.getContext('2d');
    this.ink.scale(density, density);
    this.rect(0, 0, width, height, background);
  }

  rect(x, y, width, height, fill, alpha = 1) {
    this.ink.globalAlpha = alpha;
    this.ink.fillStyle = fill;
    this.ink.fillRect(x, y, width, height);
  }

  frame(x, y, width, height, color, thick = 1) {
    this.ink.globalAlpha = 1;
    this.ink.strokeStyle = color;
    this.ink.lineWidth = thick;
    this.ink.strokeRect(x, y, width, height);
  }

  // Curves from (x1, y1) to (x2, y2), level at both ends.
  links(list, color, alpha, thick) {
    const ink = this.ink;
    ink.globalAlpha = alpha;
    ink.strokeStyle = color;
    ink.lineWidth = thick;
    ink.beginPath();
    for (const [x1, y1, x2, y2] of list) {
      const middle = (x1 + x2) / 2;
      ink.moveTo(x1, y1);
      ink.bezierCurveTo(middle, y1, middle, y2, x2, y2);
    }
    ink.stroke();
  }

  text(text, x, y, {color, size = 13, align = 'left', weight = 400, turn = 0}) {
    const ink = this.ink;
    ink.globalAlpha = 1;
    ink.fillStyle = color;
    ink.font = `${weight} ${size}px ${FONT}`;
    ink.textAlign = align;
    ink.textBaseline = 'middle';
    ink.save();
    ink.translate(x, y);
    ink.rotate(turn * Math.PI / 180);
    ink.fillText(text, 0, 0);
    ink.restore();
  }

  // What is drawn so far, and back to it.
  copy() {
    const picture = document.createElement('canvas'), {canvas} = this.ink;
    picture.width = canvas.width;
    picture.height = canvas.height;
    picture.getContext('2d').drawImage(canvas, 0, 0);
    return picture;
  }

  paste(picture) {
    this.ink.save();
    this.ink.resetTransform();
    this.ink.globalAlpha = 1;
    this.ink.drawImage(picture, 0, 0);
    this.ink.restore();
  }

  image(picture, x, y, width, height) {
    this.ink.globalAlpha = 1;
    this.ink.imageSmoothingEnabled = picture.width > width || picture.height > height;
    this.ink.drawImage(picture, x, y, width, height);
  }
}

class SvgPaper {
  constructor(width, height, background) {
    this.parts = [`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}" font-family="${escapeXml(FONT)}">`];
    this.rect(0, 0, width, height, background);
  }

  rect(x, y, width, height, fill, alpha = 1) {
    this.parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" ` +
      `fill="${fill}"${alpha < 1 ? ` fill-opacity="${round(alpha)}"` : ''}/>`);
  }

  frame(x, y, width, height, color, thick = 1) {
    this.parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" ` +
      `fill="none" stroke="${color}" stroke-width="${thick}"/>`);
  }

  links(list, color, alpha, thick) {
    const path = list.map(([x1, y1, x2, y2]) => {
      const middle = round((x1 + x2) / 2);
      return `M${round(x1)} ${round(y1)}C${middle} ${round(y1)} ${middle} ${round(y2)} ${round(x2)} ${round(y2)}`;
    });
    this.parts.push(`<path d="${path.join('')}" fill="none" stroke="${color}" stroke-opacity="${round(alpha)}" ` +
      `stroke-width="${round(thick)}"/>`);
  }

  text(text, x, y, {color, size = 13, align = 'left', weight = 400, turn = 0}) {
    const anchor = {left: 'start', center: 'middle', right: 'end'}[align];
    this.parts.push(`<text transform="translate(${round(x)} ${round(y)})${turn ? ` rotate(${turn})` : ''}" ` +
      `dominant-baseline="central" text-anchor="${anchor}" font-size="${size}" font-weight="${weight}" ` +
      `fill="${color}" xml:space="preserve">${escapeXml(text)}</text>`);
  }

  image(picture, x, y, width, height) {
    this.parts.push(`<image x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" ` +
      `preserveAspectRatio="none" style="image-rendering:pixelated" href="${picture.toDataURL('image/png')}"/>`);
  }

  toString() {
    return `${this.parts.join('\n')}\n</svg>\n`;
  }
}

const round = (x) => Math.round(x * 100) / 100;

function escapeXml(text) {
  const names = {'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'};
  // XML has no other control characters; half a surrogate pair would break the file.
  const whole = text.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '·');
  return whole.replace(/[&<>"]/g, (x) => names[x]);
}

// A scale of weights from 0 to 1 with its ticks, as wide as given.
function weightLegend(paper, x, y, width, f) {
  const picture = pixels(1, 256, (_, c) => ramp(f.theme)[c]);
  paper.image(picture, x, y, width, 10);
  paper.frame(x, y, width, 10, f.colors.edge);
  for (const w of [0, 0.01, 0.05, 0.1, 0.25, 0.5, 1])
    paper.text(String(w), x + width * Math.sqrt(w), y + 20, {color: f.colors.soft, size: 11, align: 'center'});
  paper.text('weight', x - 10, y + 5, {color: f.colors.soft, size: 11, align: 'right'});
}
