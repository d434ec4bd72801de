//! Formats tables with aligned columns, as text or Markdown.

use foxy_base::printable;

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table with the headings `heads`.
    pub fn new(heads: &[&str]) -> Self {
        Self { rows: vec![heads.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row. Missing cells stay empty. Characters that could change a terminal are replaced.
    pub fn row(&mut self, cells: &[String]) {
        let cell = |cell: &String| printable(&cell.replace(['\n', '\r'], " "));
        self.rows.push(cells.iter().map(cell).collect());
    }

    /// Returns the table as Markdown, with numbers aligned to the right.
    pub fn markdown(&self) -> String {
        let columns = self.columns();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            for column in 0..columns {
                let cell = row.get(column).map_or("", String::as_str);
                let cell = cell.replace('|', "\\|");
                text.extend(["| ", cell.as_str(), if cell.is_empty() { "" } else { " " }]);
            }
            text.push_str("|\n");
            if number == 0 {
                let rule = |column| if self.holds_numbers(column) { "|--:" } else { "|---" };
                text.extend((0..columns).map(rule));
                text.push_str("|\n");
            }
        }
        text
    }

    /// Returns all rows. The first row has the headings.
    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Returns the number of cells in the longest row.
    pub(crate) fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns whether the column has only numbers. Empty cells and dashes do not count.
    pub(crate) fn holds_numbers(&self, column: usize) -> bool {
        let cells = self.rows.iter().skip(1).filter_map(|row| row.get(column));
        let mut filled = cells.filter(|cell| !cell.is_empty() && *cell != "–").peekable();
        filled.peek().is_some() && filled.all(|cell| is_number(cell))
    }

    /// Returns the table as text, without trailing white space.
    pub fn render(&self) -> String {
        let columns = self.columns();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                let padding = " ".repeat(width - cell.chars().count());
                if is_number(cell) {
                    line.extend([&padding, cell])
                } else {
                    line.extend([cell, &padding])
                }
                line.push_str("  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Returns whether a cell is a number, a range (`131–135`) or a fraction (`1/10`), with an optional
/// unit. `001-table2` and `1/s` are not numbers.
fn is_number(cell: &str) -> bool {
    let unit = cell.trim_start_matches(|c: char| c.is_ascii_digit() || " ,.–-+/×e".contains(c));
    let number = cell[..cell.len() - unit.len()].trim_end();
    cell.starts_with(|c: char| c.is_ascii_digit() || "-×".contains(c))
        && number.ends_with(|c: char| c.is_ascii_digit())
        && !unit.contains(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_aligns_numbers_right_and_escapes_bars() {
        let mut table = Table::new(&["proxy", "rate"]);
        table.row(&["a|b".into(), "120".into()]);
        table.row(&["none".into(), "–".into()]);
        table.row(&["short".into()]);
        assert_eq!(
            table.markdown(),
            "| proxy | rate |\n|---|--:|\n| a\\|b | 120 |\n| none | – |\n| short | |\n"
        );
    }

    #[test]
    fn names_that_begin_with_digits_are_words() {
        for number in [
            "12",
            "-0.5",
            "1,058,206",
            "131–135",
            "1/10",
            "×4",
            "1.250e-7",
            "45 %",
            "1.5 KiB",
            "12ms",
        ] {
            assert!(is_number(number), "{number}");
        }
        for word in ["", "–", "-", "001-table2", "000-d1", "1/s", "64-", "foxy"] {
            assert!(!is_number(word), "{word}");
        }
    }

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(&["proxy", "rate"]);
        table.row(&["foxy".into(), "120".into()]);
        table.row(&["a longer name".into(), "7".into()]);
        assert_eq!(
            table.render(),
            "proxy          rate\nfoxy            120\na longer name     7\n"
        );
    }
}
