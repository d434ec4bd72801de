// The outcomes of requests that the server counts, in groups for charts and colours.

// Each group has the CSS class of its colour.
export const GROUPS = [
  { name: "memory hit", class: "memory", outcomes: ["memory-hit"] },
  { name: "disk hit", class: "disk", outcomes: ["disk-hit"] },
  { name: "revalidated or stale", class: "revalidated",
    outcomes: ["revalidated", "stale-if-error"] },
  { name: "shared fetch", class: "shared", outcomes: ["collapsed"] },
  { name: "miss or bypass", class: "fetched", outcomes: ["miss", "bypass"] },
  { name: "error, or foxy's own answer", class: "own",
    outcomes: ["origin-failed", "refused", "local"] },
  { name: "tunnel", class: "tunnel", outcomes: ["tunnel"] },
  { name: "incomplete answer", class: "cut", outcomes: ["cut"] },
];

// Returns the CSS class of an outcome.
export function classOf(outcome) {
  return GROUPS.find(({ outcomes }) => outcomes.includes(outcome))?.class ?? "own";
}

// Returns the finished requests of each outcome between two answers of the server. After a restart
// of foxy, the later counts are lower, and the result is 0.
export function grown(earlier, later) {
  return later.outcomes.map((one) => {
    const before = earlier.outcomes.find(({ name }) => name === one.name);
    return {
      ...one,
      count: Math.max(one.count - (before?.count ?? 0), 0),
      buckets: one.buckets.map(([end, count], place) =>
        [end, Math.max(count - (before?.buckets[place][1] ?? 0), 0)]),
    };
  });
}

// Returns the number of requests that `counts` selects.
export function total(outcomes, counts = () => true) {
  return outcomes.filter(counts).reduce((sum, { count }) => sum + count, 0);
}

// Returns a time in microseconds that the share `share` of the requests do not exceed. A bucket has
// its end in seconds (null: no end), and the number of requests that took no longer.
export function quantile({ buckets }, share) {
  const wanted = buckets.at(-1)[1] * share;
  const place = buckets.findIndex(([, count]) => count >= wanted && count > 0);
  if (place < 0) return NaN;
  const [start, below] = place > 0 ? buckets[place - 1] : [0, 0];
  const [end, count] = buckets[place];
  if (end === null) return start * 1e6;
  return (start + ((end - start) * (wanted - below)) / (count - below)) * 1e6;
}
