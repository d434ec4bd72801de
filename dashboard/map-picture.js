// Draws the map of a store on a canvas: a rectangle for each segment, in the order of the file.

const SCALE = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"];
const STATE_COLOURS = {
  free: "--track", used: "--disk", sealed: "--disk", sealing: "--shared", copying: "--fetched",
  leaving: "--own", open: "--head",
};
const HOST_COLOURS = ["#1f6fb8", "#d9822b", "#2e8540", "#cf3b30", "#7a5ec0", "#0f8a8a", "#b5651d",
  "#c2479b"];
const OTHER_HOST = "#8b949e";
const GAP = 2;
const HEADING = 24;
const MAX_SIZE = 64;
// On a narrower canvas, the headings are short.
const NARROW = 500;
const WANTED_HEIGHT = 430;
// From this size on, a rectangle shows which parts of the segment are live.
const SHOWS_PARTS = 13;

function mix(from, to, share) {
  const part = (colour, at) => parseInt(colour.slice(at, at + 2), 16);
  const channel = (at) => Math.round(part(from, at) + (part(to, at) - part(from, at)) * share);
  return `rgb(${channel(1)} ${channel(3)} ${channel(5)})`;
}

// Returns a colour for a share from 0 to 1.
export function scale(share) {
  const place = Math.min(Math.max(share, 0), 1) * (SCALE.length - 1);
  const first = Math.min(Math.floor(place), SCALE.length - 2);
  return mix(SCALE[first], SCALE[first + 1], place - first);
}

export function hostColour(rank) {
  return HOST_COLOURS[rank] ?? OTHER_HOST;
}

// The picture. `cells` is a list of { log, state, share, colour, strips }: `share` is the live
// share of the segment, and `strips` has a digit for each part of it.
export class MapPicture {
  constructor(canvas) {
    this.canvas = canvas;
    this.places = [];
  }

  variable(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  stateColour(state) {
    return this.variable(STATE_COLOURS[state]);
  }

  // Computes the place of each cell. The cells of each log begin on a line of their own.
  arrange(cells) {
    const width = this.canvas.clientWidth || 300;
    const size = Math.floor(Math.sqrt((width * WANTED_HEIGHT) / Math.max(cells.length, 1)));
    this.size = Math.min(Math.max(size, 5), MAX_SIZE);
    this.columns = Math.max(Math.floor(width / this.size), 1);
    this.places = [];
    this.headings = [];
    let [column, top, log] = [0, 0, null];
    for (const cell of cells) {
      if (cell.log !== log) {
        if (log !== null) top += this.size + 6;
        this.headings.push([cell.log, top]);
        [column, log] = [0, cell.log];
        top += HEADING;
      } else if (column === this.columns) {
        [column, top] = [0, top + this.size];
      }
      this.places.push([column * this.size, top]);
      column += 1;
    }
    const height = top + this.size + 4;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    return ratio;
  }

  draw(cells, chosen, areaNames) {
    const ratio = this.arrange(cells);
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "600 13px system-ui, sans-serif";
    pen.fillStyle = this.variable("--soft");
    const isNarrow = this.canvas.clientWidth < NARROW;
    for (const [log, top] of this.headings) {
      pen.fillText(isNarrow ? areaNames[log].split(":")[0] : areaNames[log], 0, top + 15);
    }
    const empty = this.variable("--track");
    cells.forEach((cell, index) => this.drawCell(pen, cell, index, empty));
    if (chosen !== null && this.places[chosen]) {
      const [left, top] = this.places[chosen];
      pen.strokeStyle = this.variable("--text");
      pen.lineWidth = 3;
      pen.strokeRect(left - 1, top - 1, this.size, this.size);
    }
  }

  drawCell(pen, cell, index, empty) {
    const [left, top] = this.places[index];
    const side = this.size - GAP;
    pen.fillStyle = empty;
    pen.fillRect(left, top, side, side);
    pen.fillStyle = cell.colour;
    if (cell.state !== "free" && cell.strips && this.size >= SHOWS_PARTS) {
      const width = side / cell.strips.length;
      [...cell.strips].forEach((digit, number) => {
        const high = (side * Number(digit)) / 9;
        pen.fillRect(left + number * width, top + side - high, width + 0.3, high);
      });
    } else if (cell.state !== "free") {
      const high = Math.max(side * cell.share, cell.share > 0 ? 1 : 0);
      pen.fillRect(left, top + side - high, side, high);
    }
    if (["open", "copying", "leaving", "sealing"].includes(cell.state)) {
      const line = this.size >= SHOWS_PARTS ? 3 : 2;
      pen.strokeStyle = this.stateColour(cell.state);
      pen.lineWidth = line;
      if (cell.state === "leaving") pen.setLineDash([4, 3]);
      pen.strokeRect(left + line / 2, top + line / 2, side - line, side - line);
      pen.setLineDash([]);
    }
  }

  // Returns the number of the cell at a point of the canvas, or null.
  at(x, y) {
    const found = this.places.findIndex(([left, top]) =>
      x >= left && x < left + this.size && y >= top && y < top + this.size);
    return found < 0 ? null : found;
  }
}
