//! The map of a store's disk on a small screen: a character for each segment, or for several.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use serde_json::Value;

/// Explains the characters of the map to the user.
pub const LEGEND: &str = "height: live data, ·: free, ◆: write position, ×: being evicted";
/// Characters for the fraction of a sealed (completely written) segment that live records use.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const OPEN: char = '◆';
const LEAVING: char = '×';
const FREE: char = '·';

/// Draws the map of a store on a terminal. `map` is the JSON that the dashboard gets.
pub struct SmallMap<'a> {
    pub map: &'a Value,
    pub has_colours: bool,
}

impl SmallMap<'_> {
    pub fn render(&self, area: Rect, buffer: &mut Buffer) {
        let cells = self.map["cells"].as_array().map_or(&[][..], Vec::as_slice);
        let places: Vec<_> = area.positions().collect();
        let each = cells.len().div_ceil(places.len().max(1)).max(1);
        for (place, cells) in places.into_iter().zip(cells.chunks(each)) {
            let character = self.character(cells);
            buffer[place].set_char(character).set_style(self.style(character));
        }
    }

    /// Returns the character for these segments of the store. A segment that foxy writes or evicts
    /// determines the character, even if the other segments are sealed.
    fn character(&self, cells: &[Value]) -> char {
        let state = |cell: &Value| {
            let number = cell[1].as_u64().and_then(|number| usize::try_from(number).ok());
            number.and_then(|number| self.map["states"][number].as_str()).unwrap_or("free")
        };
        let has = |states: &[&str]| cells.iter().any(|cell| states.contains(&state(cell)));
        if has(&["open"]) {
            return OPEN;
        }
        if has(&["copying", "leaving"]) {
            return LEAVING;
        }
        if cells.iter().all(|cell| state(cell) == "free") {
            return FREE;
        }
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let sum = |field: usize| cells.iter().map(|cell| number(&cell[field])).sum::<u64>();
        let (live, all) = (sum(7), sum(10));
        let levels = LEVELS.len() as u64 - 1;
        let level = (live * levels).div_ceil(all.max(1)).min(levels);
        LEVELS[usize::try_from(level).unwrap_or(0)]
    }

    fn style(&self, character: char) -> Style {
        let style = match character {
            OPEN | LEAVING => Style::new().bold(),
            _ => Style::new(),
        };
        match character {
            _ if !self.has_colours => style,
            OPEN => style.fg(Color::Yellow),
            LEAVING => style.fg(Color::Red),
            FREE => style.fg(Color::DarkGray),
            _ => style.fg(Color::Cyan),
        }
    }
}
