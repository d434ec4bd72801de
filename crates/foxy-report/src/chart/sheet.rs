//! The sheet a picture stands on: title, subtitle and legend at the top, each below the other, the
//! picture under them.

use super::style::{SHEET, colour, mark};
use super::svg::{Anchor, Svg, at, escape, width_of, wrapped};

/// The width of every sheet.
pub(super) const WIDTH: f64 = 760.0;
/// Room at its left and right edge.
pub(super) const MARGIN: f64 = 24.0;

/// What stands before a name in the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Line,
    Dashed,
    Dot,
    Box,
}

/// A sheet; `next` is where free room begins.
#[derive(Debug)]
pub(super) struct Sheet {
    label: String,
    pub(super) svg: Svg,
    pub(super) next: f64,
}

impl Sheet {
    /// A sheet with its title and subtitle, broken into lines where they are long.
    pub(super) fn new(title: &str, subtitle: &str) -> Self {
        let mut sheet =
            Self { label: format!("{title}. {subtitle}"), svg: Svg::default(), next: 34.0 };
        for line in wrapped(title, 17.0, WIDTH - 2.0 * MARGIN) {
            sheet.svg.words("fx-title", (MARGIN, sheet.next), Anchor::Start, &line);
            sheet.next += 21.0;
        }
        for line in wrapped(subtitle, 12.0, WIDTH - 2.0 * MARGIN) {
            sheet.svg.words("fx-sub", (MARGIN, sheet.next - 1.0), Anchor::Start, &line);
            sheet.next += 16.0;
        }
        sheet
    }

    /// A row of names with their keys, broken into lines where it is long. Entries are key, class
    /// of colour, number of the mark, and name; keys without a name stand close to the next.
    pub(super) fn legend(&mut self, entries: &[(Key, String, usize, String)]) {
        if entries.is_empty() {
            return;
        }
        let (mut x, mut y) = (MARGIN, self.next + 13.0);
        for (key, class, number, name) in entries {
            let wide = 26.0 + width_of(name, 12.0) + 20.0;
            if x > MARGIN && x + wide - 20.0 > WIDTH - MARGIN {
                (x, y) = (MARGIN, y + 20.0);
            }
            self.key(*key, class, *number, (x, y - 4.0));
            let start = if matches!(key, Key::Line | Key::Dashed) { 28.0 } else { 17.0 };
            if !name.is_empty() {
                self.svg.words("fx-name", (x + start, y), Anchor::Start, name);
            }
            x += if name.is_empty() { 14.0 } else { wide - (26.0 - start) };
        }
        self.next = y + 9.0;
    }

    fn key(&mut self, key: Key, class: &str, number: usize, (x, y): (f64, f64)) {
        match key {
            Key::Line | Key::Dashed => {
                let dashes = if key == Key::Dashed { " fx-dashed" } else { "" };
                self.svg.line(&format!("fx-line {class}{dashes}"), (x, y), (x + 22.0, y));
                self.svg.path(&format!("fx-mark {class}"), &mark(number, x + 11.0, y), "");
            }
            Key::Dot => self.svg.path(&format!("fx-mark {class}"), &mark(0, x + 5.0, y), ""),
            Key::Box => {
                let (left, top) = (at(x), at(y - 5.5));
                self.svg.path(&format!("fx-bar {class}"), &format!("M{left} {top}h11v11h-11z"), "");
            }
        }
    }

    /// The whole picture, `height` high.
    pub(super) fn finish(self, height: f64) -> String {
        let (width, height) = (at(WIDTH), at(height.ceil()));
        let (label, body) = (escape(&self.label), self.svg.text);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fx\" role=\"img\" aria-label=\"{label}\" \
             viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
             <style>\n{SHEET}</style>\n\
             <rect class=\"fx-ground\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\n{body}</svg>\n"
        )
    }
}

/// One legend entry for each named series, when there is more than one.
pub(super) fn entries<'a>(
    names: impl Iterator<Item = (Key, &'a str)>,
) -> Vec<(Key, String, usize, String)> {
    let entry = |(number, (key, name)): (usize, (Key, &str))| {
        (key, colour(number), number, name.to_string())
    };
    let entries: Vec<_> = names.enumerate().map(entry).collect();
    if entries.len() > 1 { entries } else { Vec::new() }
}
