//! The picture around a chart: title, subtitle, legend and style. The colours suit colour-blind
//! readers (after Okabe and Ito). Shapes of marks and dashed lines also distinguish the series.

use super::Look;
use super::svg::{Anchor, BOLD, Svg, at, escape, width_of, wrapped};

pub(super) const WIDTH: f64 = 760.0;
pub(super) const MARGIN: f64 = 24.0;

/// The symbol before a name in the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Line,
    Dashed,
    /// A line without marks.
    Steps,
    /// A mark without a line.
    Mark,
    Dot,
    Box,
}

/// An entry of the legend.
pub(super) struct Entry {
    pub(super) key: Key,
    /// CSS class of the colour.
    pub(super) class: String,
    /// Number of the series, which selects the mark.
    pub(super) mark: usize,
    pub(super) name: String,
}

/// A picture under construction. Everything below the height `next` is still empty.
#[derive(Debug)]
pub(super) struct Sheet {
    label: String,
    pub(super) svg: Svg,
    pub(super) next: f64,
}

impl Sheet {
    /// Starts a picture. `finding` has the sentences between title and subtitle. Breaks long texts
    /// into lines.
    pub(super) fn new(title: &str, finding: &str, subtitle: &str) -> Self {
        let texts = [title, finding.trim_end_matches('.'), subtitle];
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let label = texts.join(". ").replace('\n', " ");
        let mut sheet = Self { label, svg: Svg::default(), next: 34.0 };
        for line in wrapped(title, 17.0 * BOLD, WIDTH - 2.0 * MARGIN) {
            sheet.svg.words("fx-title", (MARGIN, sheet.next), Anchor::Start, &line);
            sheet.next += 21.0;
        }
        let width = WIDTH - 2.0 * MARGIN;
        for line in finding.lines().flat_map(|line| wrapped(line, 13.0, width)) {
            sheet.svg.words("fx-finding", (MARGIN, sheet.next), Anchor::Start, &line);
            sheet.next += 17.0;
        }
        for line in wrapped(subtitle, 12.0, WIDTH - 2.0 * MARGIN) {
            sheet.svg.words("fx-sub", (MARGIN, sheet.next - 1.0), Anchor::Start, &line);
            sheet.next += 16.0;
        }
        sheet
    }

    /// Adds a legend, on several lines if necessary. After an entry without a name, the next entry
    /// follows closely, so that both symbols share one name.
    pub(super) fn legend(&mut self, entries: &[Entry]) {
        if entries.is_empty() {
            return;
        }
        let (mut x, mut y) = (MARGIN, self.next + 13.0);
        for Entry { key, class, mark, name } in entries {
            let wide = 26.0 + width_of(name, 12.0) + 20.0;
            if x > MARGIN && x + wide - 20.0 > WIDTH - MARGIN {
                (x, y) = (MARGIN, y + 20.0);
            }
            self.key(*key, class, *mark, (x, y - 4.0));
            let has_line = matches!(key, Key::Line | Key::Dashed | Key::Steps);
            let start = if has_line { 28.0 } else { 17.0 };
            if !name.is_empty() {
                self.svg.words("fx-name", (x + start, y), Anchor::Start, name);
            }
            x += if name.is_empty() { 14.0 } else { wide - (26.0 - start) };
        }
        self.next = y + 9.0;
    }

    fn key(&mut self, key: Key, class: &str, number: usize, (x, y): (f64, f64)) {
        let is_quoted = class == QUOTED;
        let of_mark = format!("{} {class}", if is_quoted { "fx-quote" } else { "fx-mark" });
        match key {
            Key::Line | Key::Dashed | Key::Steps => {
                let dashes = if key == Key::Dashed { " fx-dashed" } else { "" };
                self.svg.line(&format!("fx-line {class}{dashes}"), (x, y), (x + 22.0, y));
                if key != Key::Steps {
                    self.svg.path(&of_mark, &mark(number, x + 11.0, y), "");
                }
            }
            Key::Mark => self.svg.path(&of_mark, &mark(number, x + 5.0, y), ""),
            Key::Dot => self.svg.path(&of_mark, &mark(0, x + 5.0, y), ""),
            Key::Box => {
                let (left, top) = (at(x), at(y - 5.5));
                self.svg.path(&format!("fx-bar {class}"), &format!("M{left} {top}h11v11h-11z"), "");
            }
        }
    }

    pub(super) fn finish(self, height: f64) -> String {
        let (width, height) = (at(WIDTH), at(height.ceil()));
        let (label, body) = (escape(&self.label), self.svg.text);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fx\" role=\"group\" aria-label=\"{label}\" \
             viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
             <style>\n{SHEET}</style>\n\
             <rect class=\"fx-ground\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\n{body}</svg>\n"
        )
    }
}

/// Returns the entries of the legend for several series, or none for a single series.
pub(super) fn entries(series: &[(Key, Look, &str)]) -> Vec<Entry> {
    if series.len() < 2 {
        return Vec::new();
    }
    let classes = classes(series.iter().map(|(_, look, _)| *look == Look::Quoted));
    let entry = |(mark, (class, (key, _, name))): (usize, (String, &(Key, Look, &str)))| Entry {
        key: *key,
        class,
        mark,
        name: (*name).to_owned(),
    };
    classes.into_iter().zip(series).enumerate().map(entry).collect()
}

/// The colour class of quoted values.
const QUOTED: &str = "fx-paper";

/// Returns the CSS class for the colour of each series. All series with values from papers share
/// one class.
pub(super) fn classes(are_quoted: impl Iterator<Item = bool>) -> Vec<String> {
    let mut ours = 0;
    let class = |is_quoted| {
        if is_quoted {
            return QUOTED.into();
        }
        ours += 1;
        colour(ours - 1)
    };
    are_quoted.map(class).collect()
}

pub(super) const COLOURS: usize = 8;

/// The style sheet of every chart. All class names start with `fx-`, so that they do not clash with
/// class names of the page.
const SHEET: &str = "\
.fx{font-family:Inter,system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',Helvetica,Arial,sans-serif;font-variant-numeric:tabular-nums}
.fx-ground{fill:#fdfdfb}.fx-title{font-size:17px;font-weight:600;fill:#1b1d22}.fx-sub{font-size:12px;fill:#5b5f67}.fx-finding{font-size:13px;font-weight:500;fill:#1b1d22}
.fx-caption{font-size:12px;font-weight:500;fill:#454951}.fx-tick,.fx-value{font-size:11.5px;fill:#5b5f67}.fx-name{font-size:12px;fill:#2c2f35}
.fx-grid,.fx-axis{fill:none;stroke:#e6e6e1;stroke-width:1;shape-rendering:crispEdges}.fx-axis{stroke:#a9abad}
.fx-line,.fx-whisker{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.fx-thin{stroke-width:1.4}
.fx-dashed{stroke-dasharray:6 5}.fx-band{fill:currentColor;fill-opacity:.15}.fx-mark{fill:currentColor;stroke:#fdfdfb;stroke-width:1.3}
.fx-bar{fill:currentColor;fill-opacity:.88}.fx-whisker{stroke:#1b1d22;stroke-width:1.2;stroke-opacity:.75}
.fx-note{font-size:11px;fill:#6a6e76}.fx-halo{paint-order:stroke;stroke:#fdfdfb;stroke-width:3.5;stroke-linejoin:round}.fx-paper{color:#1b1d22}.fx-bar.fx-paper{fill-opacity:.62}.fx-cut,.fx-run{fill:currentColor;color:#1b1d22}
.fx-quote{fill:#fdfdfb;stroke:currentColor;stroke-width:2}.fx-run{stroke:#fdfdfb;stroke-width:.6}.fx-line.fx-paper{stroke-width:1.4}
.fx-leader{fill:none;stroke:currentColor;stroke-width:1;stroke-dasharray:2 2}
.fx-end{font-size:12px;font-weight:600;fill:currentColor}
.fx-tip{outline:none}.fx-say{font-size:12px;font-weight:600;fill:#1b1d22;visibility:hidden}
.fx-tip:focus>.fx-say{visibility:visible}
.fx-tip:focus>path{stroke:#1b1d22;stroke-opacity:1;stroke-width:2.5}
.fx-dots{fill:none;stroke:currentColor;stroke-width:2.4;stroke-linecap:round;stroke-opacity:.62}
.fx-c0{color:#0b66b0}.fx-c1{color:#d1560a}.fx-c2{color:#00886a}.fx-c3{color:#b4589a}.fx-c4{color:#b88300}.fx-c5{color:#3aa0dc}.fx-c6{color:#6b4fb3}.fx-c7{color:#5a6068}
.fx-free{fill:#f1efe8}.fx-frame{fill:none;stroke:#a9abad;stroke-width:1}.fx-cell{fill:none;stroke:currentColor;stroke-width:1;shape-rendering:crispEdges}
.fx-m1{color:#bcd5ea}.fx-m2{color:#86b4db}.fx-m3{color:#4a8cc4}.fx-m4{color:#1f659f}.fx-m5{color:#0b3d68}
@media screen and (prefers-color-scheme:dark){
.fx-ground{fill:#16181c}.fx-title,.fx-finding{fill:#eceef1}.fx-sub{fill:#969ca6}.fx-caption{fill:#b9bec7}.fx-tick,.fx-value{fill:#a0a6b0}.fx-name{fill:#d7dae0}
.fx-note{fill:#969ca6}.fx-halo{stroke:#16181c}.fx-paper{color:#eceef1}.fx-cut,.fx-run{color:#eceef1}.fx-run{stroke:#16181c}.fx-quote{fill:#16181c;stroke:currentColor}
.fx-say{fill:#eceef1}.fx-tip:focus>path{stroke:#eceef1}
.fx-grid{stroke:#2a2d33}.fx-axis,.fx-frame{stroke:#5a5f68}.fx-mark{stroke:#16181c}.fx-whisker{stroke:#eceef1}
.fx-c0{color:#5aaef0}.fx-c1{color:#f58a4b}.fx-c2{color:#3ccba6}.fx-c3{color:#e49ccf}.fx-c4{color:#f0bd49}.fx-c5{color:#a3d8f7}.fx-c6{color:#b3a0f0}.fx-c7{color:#b4bac4}
.fx-free{fill:#24272c}.fx-m1{color:#2b4a63}.fx-m2{color:#2f6897}.fx-m3{color:#4290cc}.fx-m4{color:#7db9e8}.fx-m5{color:#d3e9fa}
}
";

/// Returns the CSS class for the colour of each series.
pub(super) fn colours<'a>(looks: impl Iterator<Item = &'a Look>) -> Vec<String> {
    classes(looks.map(|look| *look == Look::Quoted))
}

/// Returns the CSS class for the colour of a series.
pub(super) fn colour(series: usize) -> String {
    format!("fx-c{}", series % COLOURS)
}

/// Returns the SVG path of the mark of a series: a circle, square, diamond, or triangle up or down.
pub(super) fn mark(series: usize, x: f64, y: f64) -> String {
    let corners = |offsets: &[(f64, f64)]| {
        let places: Vec<String> = offsets
            .iter()
            .map(|(right, down)| format!("{} {}", at(x + right), at(y + down)))
            .collect();
        format!("M{}z", places.join("L"))
    };
    match series % 5 {
        0 => format!("M{} {}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", at(x - 4.0), at(y)),
        1 => corners(&[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)]),
        2 => corners(&[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)]),
        3 => corners(&[(0.0, -4.8), (4.6, 3.6), (-4.6, 3.6)]),
        _ => corners(&[(0.0, 4.8), (4.6, -3.6), (-4.6, -3.6)]),
    }
}
