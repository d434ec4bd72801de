//! Writes the HTML page of a run: facts, charts and tables in one self-contained text.

mod charts;
mod grouping;
mod leap;
mod measures;
mod records;
mod words;
mod wpb;

pub use charts::charts;
pub use leap::{Headline, headline};

use crate::chart::{Chart, escape, map::Map};
use crate::figure::extent_text;
use crate::record::Setup;
use crate::table::Table;
use foxy_base::ByteSize;
use std::time::{Duration, UNIX_EPOCH};

/// Last second of the year 9999, the largest date that the page can format.
const MAX_DATE_SECONDS: u64 = 253_402_300_799;

const STYLE: &str = "\
:root{color-scheme:light dark}
body{margin:0 auto;padding:2.5rem 1.25rem 4rem;max-width:62rem;background:#f4f3ee;color:#1b1d22;line-height:1.5;
font-family:Inter,system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',Helvetica,Arial,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 1rem}h2{font-size:1.15rem;margin:2.4rem 0 .7rem}p{max-width:44rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:0 0 1.5rem;font-size:.9rem}
dt{color:#6a6e76}dd{margin:0;overflow-wrap:anywhere}
figure{margin:1.2rem 0}figure>svg{display:block;max-width:100%;height:auto}
.table{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:#6a6e76;padding-bottom:.35rem}
th,td{padding:.28rem .8rem .28rem 0;text-align:left;vertical-align:top;border-bottom:1px solid #dedcd4}
th{font-weight:600;color:#454951;border-bottom-color:#a9abad}.number{text-align:right;white-space:nowrap}
.wrong{color:#b3261e}
@media screen and (prefers-color-scheme:dark){body{background:#0f1114;color:#e4e6ea}dt,caption{color:#969ca6}
th{color:#b9bec7;border-bottom-color:#5a5f68}td{border-bottom-color:#2a2d33}.wrong{color:#ff8a80}}
details{margin:.3rem 0;font-size:.9rem}pre{overflow-x:auto;font-size:.8rem;line-height:1.35}
@media print{body{background:#fff;padding:0;max-width:none}figure,tr{break-inside:avoid}h2{break-after:avoid}}
";

/// An HTML page under construction.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
    pictures: Vec<String>,
}

impl Page {
    /// Makes an empty page.
    pub fn new(title: &str) -> Self {
        Self { title: title.into(), body: String::new(), pictures: Vec::new() }
    }

    /// Makes a page with the setup and setting of a run. `stopped` is the reason if the run ended
    /// early. `warnings` are reasons to doubt the measured values.
    pub fn of_run(
        title: &str,
        setup: &Setup,
        setting: &str,
        stopped: Option<&str>,
        warnings: &[String],
    ) -> Self {
        let mut page = Self::new(title);
        page.run(setup, setting, stopped, warnings);
        page
    }

    /// Adds the setup and setting of a run, as [`Page::of_run`] does.
    pub fn run(
        &mut self,
        setup: &Setup,
        setting: &str,
        stopped: Option<&str>,
        warnings: &[String],
    ) {
        self.setup(setup);
        self.paragraph(setting);
        if let Some(reason) = stopped {
            self.paragraph(&format!("Incomplete: {reason}."));
        }
        for warning in warnings {
            self.paragraph(&format!("Warning: {warning}."));
        }
    }

    /// Adds the command, machine and start time of a run.
    pub fn setup(&mut self, setup: &Setup) {
        let started = UNIX_EPOCH + Duration::from_secs(setup.started.min(MAX_DATE_SECONDS));
        let machine = &setup.machine;
        let cores =
            if machine.cores == 1 { "1 core".into() } else { format!("{} cores", machine.cores) };
        let memory = ByteSize(machine.memory);
        self.facts(&[
            ("command", setup.command.clone()),
            ("program", format!("{} {}", setup.program, setup.version)),
            (
                "machine",
                format!("{}, {cores}, {memory} of memory, {}", machine.cpu, machine.kernel),
            ),
            ("seed", setup.seed.to_string()),
            ("scale", extent_text(setup.scale, setup.quick)),
            ("started", httpdate::fmt_http_date(started)),
        ]);
    }

    /// Adds pairs of a name and a fact.
    pub fn facts(&mut self, facts: &[(&str, String)]) {
        let facts = facts
            .iter()
            .map(|(name, fact)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(fact)));
        self.body.extend(["<dl>\n", &facts.collect::<String>(), "</dl>\n"]);
    }

    /// Adds a heading.
    pub fn heading(&mut self, words: &str) {
        self.body.push_str(&format!("<h2>{}</h2>\n", escape(words)));
    }

    /// Adds a paragraph of plain text.
    pub fn paragraph(&mut self, words: &str) {
        self.body.push_str(&format!("<p>{}</p>\n", escape(words)));
    }

    /// Adds a chart.
    pub fn chart(&mut self, chart: &Chart) {
        self.figure(&chart.svg());
    }

    /// Adds maps of the slots (units of space) of a simulated store.
    pub fn map(&mut self, map: &Map) {
        self.figure(&map.svg());
    }

    /// Adds preformatted text. The page shows it only after a click on `summary`.
    pub fn details(&mut self, summary: &str, text: &str) {
        let (summary, text) = (escape(summary), escape(text));
        self.body.push_str(&format!(
            "<details><summary>{summary}</summary><pre>{text}</pre></details>\n"
        ));
    }

    fn figure(&mut self, svg: &str) {
        self.body.extend(["<figure>\n", svg, "</figure>\n"]);
        self.pictures.push(svg.into());
    }

    /// Returns the charts and maps of the page as SVG, in their order.
    pub fn pictures(&self) -> &[String] {
        &self.pictures
    }

    /// Adds a table. Without a caption, pass an empty text.
    pub fn table(&mut self, caption: &str, table: &Table) {
        self.body.push_str("<div class=\"table\"><table>\n");
        if !caption.is_empty() {
            self.body.push_str(&format!("<caption>{}</caption>\n", escape(caption)));
        }
        let columns: Vec<bool> =
            (0..table.columns()).map(|column| table.holds_numbers(column)).collect();
        for (number, row) in table.rows().iter().enumerate() {
            let tag = if number == 0 { "th" } else { "td" };
            self.body.push_str("<tr>");
            for (column, holds_numbers) in columns.iter().enumerate() {
                let cell = escape(row.get(column).map_or("", String::as_str));
                let is_wrong = cell.contains('✗');
                let class = match (is_wrong, holds_numbers) {
                    (true, _) => " class=\"wrong\"",
                    (false, true) => " class=\"number\"",
                    (false, false) => "",
                };
                self.body.push_str(&format!("<{tag}{class}>{cell}</{tag}>"));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</table></div>\n");
    }

    /// Returns the page as HTML.
    pub fn html(&self) -> String {
        let (title, body) = (escape(&self.title), &self.body);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
        )
    }
}
