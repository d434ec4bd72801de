//! Draws the space of a simulated store as a map of coloured cells, as in Fig 13 of the WebCoSM
//! paper (paper 001 in docs/figures.md).
//!
//! The store is a row of slots of one size. A cell shows one or more neighbouring slots. The first
//! cell is at the lower left, and the next cells follow upwards, column by column.

use super::Provenance;
use super::sheet::{COLOURS, Entry, Key, MARGIN, Sheet, WIDTH, colour};
use super::svg::{Anchor, at, escape};
use crate::number::{significant, trimmed};
use foxy_base::ByteSize;

/// Limit of the number of rows, and of the number of columns, of a map.
const MAX_SIDE_CELLS: u64 = 150;
/// Number of shades of the one colour that shows fullness or age.
const SHADES: u32 = 5;

/// The content of a slot, a unit of a simulated store's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// No live object.
    Free,
    /// A live object. The number is its age or the number of its site. The map's [`Shading`] tells
    /// which.
    Live(u32),
}

/// The meaning of a cell's colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shading {
    /// For each cell of the map, the share of its slots that hold live objects.
    Fullness,
    /// For each cell of the map, the mean age of its live objects. The number is the age that gets
    /// the oldest shade.
    Age(u32),
    /// For each cell of the map, the web site whose objects are in most of its slots. Each site has
    /// a colour.
    Site,
}

/// The content of all slots of a store at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct MapState {
    /// Name to show under the map, such as `with locality buffers`.
    pub name: String,
    runs: Vec<(u64, Content)>,
}

impl MapState {
    /// Makes a state without slots. [`MapState::push`] adds slots.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), runs: Vec::new() }
    }

    /// Adds `slots` slots with equal content.
    pub fn push(&mut self, slots: u64, content: Content) {
        match self.runs.last_mut() {
            Some((last, same)) if *same == content => *last += slots,
            _ if slots > 0 => self.runs.push((slots, content)),
            _ => {}
        }
    }

    fn slots(&self) -> u64 {
        self.runs.iter().map(|(slots, _)| slots).sum()
    }

    /// Returns the lengths, in slots, of the free chunks. A free chunk is a row of neighbouring
    /// free slots.
    fn free_chunks(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().filter(|(_, content)| *content == Content::Free).map(|(slots, _)| *slots)
    }
}

/// Maps of several states of a store, side by side at one scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// Title in one line.
    pub title: String,
    /// Source of the states.
    pub provenance: Provenance,
    /// Meaning of the colours.
    pub shading: Shading,
    /// Size of a slot, in bytes.
    pub slot_bytes: u64,
    /// States to draw, one map each.
    pub states: Vec<MapState>,
}

/// The assignment of slots to the cells of a map.
#[derive(Clone, Copy, Debug)]
struct Grid {
    slots_per_cell: u64,
    rows: u64,
    columns: u64,
}

impl Grid {
    fn over(slots: u64) -> Self {
        let slots_per_cell = slots.div_ceil(MAX_SIDE_CELLS * MAX_SIDE_CELLS).max(1);
        let cells = slots.div_ceil(slots_per_cell).max(1);
        let rows = cells.isqrt() + u64::from(cells.isqrt().pow(2) < cells);
        Self { slots_per_cell, rows, columns: cells.div_ceil(rows) }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    slots: u64,
    live: u64,
    ages: u64,
    site: u32,
    votes: u64,
}

impl Cell {
    fn add(&mut self, slots: u64, content: Content) {
        self.slots += slots;
        if let Content::Live(number) = content {
            self.live += slots;
            self.ages += slots * u64::from(number);
            if self.site == number {
                self.votes += slots;
            } else if self.votes >= slots {
                self.votes -= slots;
            } else {
                (self.site, self.votes) = (number, slots - self.votes);
            }
        }
    }

    /// Returns the CSS class of the cell's colour, or `None` for a free cell. Under shading by age
    /// or site, a cell counts as free if less than half of its slots are live.
    fn class(&self, shading: Shading) -> Option<String> {
        let half = self.live > 0 && self.live * 2 >= self.slots;
        match shading {
            Shading::Fullness if self.live == 0 => None,
            Shading::Fullness => Some(shade(self.live * u64::from(SHADES - 1) / self.slots + 1)),
            Shading::Age(oldest) => half.then(|| {
                let share = self.ages as f64 / self.live as f64 / f64::from(oldest.max(1));
                shade(
                    u64::from(SHADES)
                        - (share * f64::from(SHADES)).clamp(0.0, f64::from(SHADES - 1)) as u64,
                )
            }),
            Shading::Site => half.then(|| colour(self.site as usize % COLOURS)),
        }
    }
}

fn shade(number: u64) -> String {
    format!("fx-m{number}")
}

impl Map {
    /// Returns the maps as SVG.
    pub fn svg(&self) -> String {
        let grid = Grid::over(self.states.iter().map(MapState::slots).max().unwrap_or(0));
        let cell = bytes(grid.slots_per_cell * self.slot_bytes);
        let subtitle = format!(
            "{} · begins lower left, runs up column by column · a cell is {cell}",
            self.provenance.text()
        );
        let mut sheet = Sheet::new(&self.title, &self.finding(), &subtitle);
        sheet.legend(&self.legend());
        let across = self.states.len().clamp(1, 3);
        let gap = 20.0;
        let wide = ((WIDTH - 2.0 * MARGIN - gap * (across - 1) as f64) / across as f64).min(560.0);
        let tall = wide * grid.rows as f64 / grid.columns as f64;
        let mut top = sheet.next + 12.0;
        for (number, state) in self.states.iter().enumerate() {
            if number > 0 && number % across == 0 {
                top += tall + 76.0;
            }
            let left = MARGIN + (wide + gap) * (number % across) as f64;
            self.panel(&mut sheet, state, grid, (left, top), (wide, tall));
        }
        sheet.finish(top + tall + 68.0)
    }

    /// Compares the free chunks of the last state with those of the first.
    fn finding(&self) -> String {
        let [first, .., last] = &self.states[..] else { return String::new() };
        let count = |state: &MapState| state.free_chunks().count().max(1) as f64;
        let mean = |state: &MapState| state.free_chunks().sum::<u64>() as f64 / count(state);
        let times = |of: &dyn Fn(&MapState) -> f64| significant(of(last) / of(first).max(1.0), 3);
        format!(
            "{}: {} × as many free chunks as {}, {} × as large in the mean.",
            last.name,
            times(&count),
            first.name,
            times(&mean)
        )
    }

    fn legend(&self) -> Vec<Entry> {
        let entry =
            |class: String, name: &str| Entry { key: Key::Box, class, mark: 0, name: name.into() };
        match self.shading {
            Shading::Fullness => {
                let names = [
                    "under ¼ live",
                    "under ½",
                    "under ¾",
                    "under all",
                    "all live; the rest is free",
                ];
                names.iter().zip(1..).map(|(name, number)| entry(shade(number), name)).collect()
            }
            Shading::Age(_) => {
                let names = ["", "", "", "", "oldest to newest; the rest is free"];
                names.iter().zip(1..).map(|(name, number)| entry(shade(number), name)).collect()
            }
            Shading::Site => {
                let name = |number| {
                    if number + 1 == COLOURS {
                        "one colour a site, in turn; the rest is free"
                    } else {
                        ""
                    }
                };
                (0..COLOURS).map(|number| entry(colour(number), name(number))).collect()
            }
        }
    }

    fn panel(
        &self,
        sheet: &mut Sheet,
        state: &MapState,
        grid: Grid,
        (left, top): (f64, f64),
        (wide, tall): (f64, f64),
    ) {
        let Grid { rows, columns, .. } = grid;
        let [x, y, width, height] = [left, top, wide, tall].map(at);
        sheet.svg.push(&format!(
            "<svg x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {columns} {rows}\" \
             preserveAspectRatio=\"none\"><title>{}</title><rect class=\"fx-free\" width=\"{columns}\" \
             height=\"{rows}\"/>",
            escape(&format!("{}: {}", state.name, self.facts(state).join(" · ")))
        ));
        for (class, outline) in outlines(&cells(state, grid), grid, self.shading) {
            sheet.svg.path(&format!("fx-cell {class}"), &outline, "");
        }
        sheet.svg.push("</svg>");
        sheet.svg.push(&format!(
            "<rect class=\"fx-frame\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
        sheet.svg.words("fx-caption", (left, top + tall + 18.0), Anchor::Start, &state.name);
        let [live, free] = self.facts(state);
        let facts = if wide > 500.0 { vec![format!("{live} · {free}")] } else { vec![live, free] };
        for (number, line) in facts.iter().enumerate() {
            let place = (left, top + tall + 34.0 + 15.0 * number as f64);
            sheet.svg.words("fx-sub", place, Anchor::Start, line);
        }
    }

    /// Returns two texts: how much of the store is live, and how many free chunks it has and how
    /// large they are. Fig 14 of the WebCoSM paper (paper 001 in docs/figures.md) shows the free
    /// chunks.
    fn facts(&self, state: &MapState) -> [String; 2] {
        let (slots, chunks) = (state.slots(), state.free_chunks().count() as u64);
        let free: u64 = state.free_chunks().sum();
        let live = format!(
            "{} % live of {}",
            trimmed(100.0 * (slots - free) as f64 / slots.max(1) as f64, 1),
            bytes(slots * self.slot_bytes)
        );
        let mean = bytes(free * self.slot_bytes / chunks.max(1));
        let largest = bytes(state.free_chunks().max().unwrap_or(0) * self.slot_bytes);
        let chunk = if chunks == 1 { "free chunk" } else { "free chunks" };
        [live, format!("{} {chunk}, mean {mean}, largest {largest}", significant(chunks as f64, 4))]
    }
}

fn cells(state: &MapState, grid: Grid) -> Vec<Cell> {
    let mut cells = vec![Cell::default(); (grid.rows * grid.columns) as usize];
    let mut slot = 0;
    for &(length, content) in &state.runs {
        let end = slot + length;
        while slot < end {
            let number = slot / grid.slots_per_cell;
            let taken = end.min((number + 1) * grid.slots_per_cell) - slot;
            cells[number as usize].add(taken, content);
            slot += taken;
        }
    }
    cells
}

/// Returns an SVG path for each colour class. The path has one stroke for neighbouring cells of a
/// column that have the same colour, so that the picture stays small.
fn outlines(
    cells: &[Cell],
    grid: Grid,
    shading: Shading,
) -> std::collections::BTreeMap<String, String> {
    let mut outlines = std::collections::BTreeMap::<String, String>::new();
    for (column, cells) in cells.chunks(grid.rows as usize).enumerate() {
        let mut row = 0;
        for same in cells.chunk_by(|one, next| one.class(shading) == next.class(shading)) {
            if let Some(class) = same.first().and_then(|cell| cell.class(shading)) {
                let stroke = format!("M{column}.5 {}v-{}", grid.rows - row, same.len());
                outlines.entry(class).or_default().push_str(&stroke);
            }
            row += same.len() as u64;
        }
    }
    outlines
}

fn bytes(count: u64) -> String {
    ByteSize(count).to_string()
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
