// Writes numbers for people.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// Returns a number with at most three significant digits below 1000, and grouped digits above.
export function number(value) {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(2)));
}

export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  let unit = 0;
  let rest = Math.abs(value);
  while (rest >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || rest >= 100 ? 0 : 1;
  return `${value < 0 ? "−" : ""}${rest.toFixed(digits)} ${UNITS[unit]}`;
}

export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const digits = share === 0 || share === 1 ? 0 : share > 0.999 ? 2 : 1;
  return `${(share * 100).toFixed(digits)} %`;
}

// Returns a number with a noun, in the singular or plural.
export function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

// Returns the number of requests for an object. foxy counts no further than 3.
export function requestsUpTo3(count) {
  return count === 3 ? "3 or more" : String(count ?? "");
}

// Returns a time that is given in microseconds.
export function duration(microseconds) {
  if (!Number.isFinite(microseconds)) return "–";
  if (microseconds < 1000) return `${Math.round(microseconds)} µs`;
  if (microseconds < 1e6) return `${number(microseconds / 1000)} ms`;
  return span(microseconds / 1e6);
}

// Returns a time that is given in seconds.
export function span(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 120) return `${number(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

// Returns the time of day.
export function clock(milliseconds) {
  return new Date(milliseconds).toLocaleTimeString("en-GB");
}
