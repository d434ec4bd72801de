//! Writes SVG text: escaped words, short coordinates, and the elements of charts.

/// Escapes `text` for XML. Replaces forbidden control characters by spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                escaped.push(' ')
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Formats a coordinate with at most one digit after the point.
pub(super) fn at(place: f64) -> String {
    let text = format!("{place:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".into() } else { text.into() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Svg {
    pub(super) text: String,
    /// The place where the picture writes the tooltip of the element with the keyboard's focus.
    pub(super) tips: (f64, f64),
}

impl Svg {
    pub(super) fn push(&mut self, markup: &str) {
        self.text.push_str(markup);
        self.text.push('\n');
    }

    pub(super) fn words(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y, words) = (at(x), at(y), escape(words));
        self.push(&format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{words}</text>"));
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(at);
        self.push(&format!("<path class=\"{class}\" d=\"M{x1} {y1}L{x2} {y2}\"/>"));
    }

    pub(super) fn dot(&mut self, class: &str, (x, y): (f64, f64)) {
        let (x, y) = (at(x), at(y));
        self.push(&format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"2\"/>"));
    }

    /// Adds an SVG path with a tooltip. The keyboard reaches the path, and the picture then shows
    /// the tooltip at the place `tips`.
    pub(super) fn tip(&mut self, class: &str, outline: &str, words: &str) {
        let (words, (x, y)) = (escape(words), self.tips);
        let (x, y) = (at(x), at(y));
        self.push(&format!(
            "<g class=\"fx-tip\" tabindex=\"0\" role=\"img\" aria-label=\"{words}\">\
             <path class=\"{class}\" d=\"{outline}\"><title>{words}</title></path>\
             <text class=\"fx-say\" x=\"{x}\" y=\"{y}\" aria-hidden=\"true\">{words}</text></g>"
        ));
    }

    /// Adds an SVG path. `words` is its tooltip, which is left out if `words` is empty.
    pub(super) fn path(&mut self, class: &str, outline: &str, words: &str) {
        if words.is_empty() {
            self.push(&format!("<path class=\"{class}\" d=\"{outline}\"/>"));
        } else {
            let words = escape(words);
            self.push(&format!(
                "<path class=\"{class}\" d=\"{outline}\"><title>{words}</title></path>"
            ));
        }
    }
}

/// The factor from the width of regular letters to that of bold letters.
pub(super) const BOLD: f64 = 1.13;

/// Estimates the width of `words` in the widest usual sans-serif font, which is DejaVu Sans. `size`
/// is the font size, in the unit of the result. Multiply `size` by [`BOLD`] for bold letters.
pub(super) fn width_of(words: &str, size: f64) -> f64 {
    let letter = |letter: char| match letter {
        'i' | 'j' | 'l' | 'I' | 'J' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '·' => 0.33,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' | '!' | '²' => 0.41,
        'c' | 'k' | 's' | 'v' | 'x' | 'y' | 'z' | '–' | '_' => 0.59,
        'm' | 'M' | 'W' | '%' | '@' | '…' => 1.0,
        'w' | '+' | '=' | '<' | '>' | '#' | '~' | '×' | '±' | '≈' | '→' => 0.84,
        'D' | 'G' | 'H' | 'N' | 'O' | 'Q' | 'U' => 0.79,
        letter if letter.is_uppercase() => 0.7,
        _ => 0.64,
    };
    words.chars().map(letter).sum::<f64>() * size
}

/// Breaks `words` at spaces into lines of at most `width`, in units of the drawing. `size` is the
/// size of the letters in the same units.
pub(super) fn wrapped(words: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line)
                if width_of(line, size) + width_of(word, size) + width_of(" ", size) <= width =>
            {
                line.extend([" ", word]);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_reserves_is_escaped_and_what_it_forbids_is_a_space() {
        assert_eq!(escape("a<b> & \"c\"'\u{0}\n"), "a&lt;b&gt; &amp; &quot;c&quot;&#39;  ");
    }

    #[test]
    fn coordinates_are_short_and_never_minus_zero() {
        let check = |place, expected: &str| assert_eq!(at(place), expected);
        check(12.04, "12");
        check(12.06, "12.1");
        check(-0.01, "0");
        check(-3.25, "-3.2");
    }

    #[test]
    fn no_text_is_wider_than_its_estimate_in_a_wide_font() {
        // The widths in DejaVu Sans, regular and bold, at a size of 1.
        let check = |words: &str, regular: f64, bold: f64| {
            let estimate = width_of(words, 1.0);
            assert!(regular <= estimate && estimate < 1.12 * regular, "{words}: {estimate}");
            assert!(bold <= width_of(words, BOLD), "{words}: {}", width_of(words, BOLD));
        };
        check(
            "Best: foxy, 10 µs (9 to 11). Worst: nginx, 30 µs (27 to 33): 3 × foxy.",
            33.67,
            37.93,
        );
        let text = "Nearer to the paper is better · bar: median of 3 seeds, small dots: each, \
                    whisker: lowest to highest";
        check(text, 49.37, 55.98);
        check(
            "Fig 6: completion time of BUDDY, and of schemes with a file for each object",
            37.87,
            42.53,
        );
        check("without locality buffers, 12.6 %", 15.62, 17.69);
        check("1,058,206", 5.09, 5.63);
        check("WWW-MULTIPLE-DIRS", 10.75, 12.17);
        check("illicit, filled", 5.40, 6.33);
    }

    #[test]
    fn long_titles_break_at_spaces() {
        assert_eq!(wrapped("one two three", 10.0, 50.0), ["one two", "three"]);
        assert_eq!(wrapped("", 10.0, 45.0), Vec::<String>::new());
    }
}
