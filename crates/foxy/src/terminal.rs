//! Writing to the terminal: the only place that touches stdout and stderr. A reader that went away is no error;
//! what it would have read is dropped.

use std::io::Write;

/// Writes `text` to stdout, followed by a line end.
pub fn print(text: &str) {
    write_all(&mut std::io::stdout().lock(), text);
}

/// Writes `text` to stderr, followed by a line end.
pub fn report(text: &str) {
    write_all(&mut std::io::stderr().lock(), text);
}

fn write_all(to: &mut impl Write, text: &str) {
    if writeln!(to, "{text}").is_ok() {
        let _reader_gone = to.flush();
    }
}
