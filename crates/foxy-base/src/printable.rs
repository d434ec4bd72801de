//! Makes texts of clients and origins safe to print. A terminal obeys control characters, and some
//! other characters change the order in which it shows a line.

/// Returns `text` with U+FFFD in place of each character that could change the terminal or the
/// order of the text: control characters, line and paragraph separators, and the controls of
/// bidirectional text (Unicode Standard Annex 9).
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|char| if is_unsafe(char) { char::REPLACEMENT_CHARACTER } else { char })
        .collect()
}

fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(char, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a JSON text with the escape `\uXXXX` in place of DEL and each character outside of
/// ASCII. These characters occur only in JSON strings, so the value stays the same.
pub fn ascii_json(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    for char in json.chars() {
        if char.is_ascii() && char != '\u{7f}' {
            ascii.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            ascii.push_str(&format!("\\u{unit:04x}"));
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_change_the_terminal_or_the_order_of_the_line() {
        let text = "a\u{1b}[2J\u{9b}31m\u{202e}b\u{2066}c\u{2028}\r\n\u{7f}ä日";
        assert_eq!(
            printable(text),
            "a\u{fffd}[2J\u{fffd}31m\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}\u{fffd}\u{fffd}ä日"
        );
    }

    #[test]
    fn json_in_ascii_has_the_same_value() {
        let json = r#"{"url":"/ä\"𝄞","n":1}"#;
        let text = format!("{json}\u{7f}\u{9b}");
        assert_eq!(ascii_json(&text), r#"{"url":"/\u00e4\"\ud834\udd1e","n":1}\u007f\u009b"#);
    }
}
