//! The screen of `foxy top`: totals, outcomes, hosts, the slowest of the recent requests, and the
//! disk.

use super::map::{LEGEND, SmallMap};
use super::watch::{Look, Looks};
use crate::commands::figures::{bytes, count, percent, rate, share, time, uptime};
use crate::commands::quantile;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Sparkline, Table, Widget};
use serde_json::{Value, json};

/// Number of slow requests on the screen.
const SLOWEST: u16 = 4;
/// Largest number of stores on the screen.
const MAX_STORES: usize = 3;
const OUTCOME_LINES: u16 = 9;
const FOLDER_WIDTH: usize = 16;

/// An outcome such as a hit, with its requests since the previous query of foxy and the histogram
/// of their latencies.
type GrownOutcome<'a> = ((f64, Vec<(f64, f64)>), &'a Value);

pub struct Screen<'a> {
    pub looks: &'a Looks,
    pub has_colours: bool,
}

impl Widget for &Screen<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let Some(last) = &self.looks.last else {
            let state = self.looks.lost.as_deref().unwrap_or("connecting");
            return Paragraph::new(format!("foxy top, {}: {state}", self.looks.address))
                .render(area, buffer);
        };
        let stores = match values(&last.live["stores"]).len().min(MAX_STORES) {
            0 => 0,
            stores => 1 + stores as u16,
        };
        let mut rest = FreeLines(area);
        self.totals(last, rest.take(5), buffer);
        let columns = [Constraint::Length(46), Constraint::Fill(1)];
        let middle = rest.take(OUTCOME_LINES);
        let [outcomes, hosts] = Layout::horizontal(columns).spacing(1).areas(middle);
        self.outcomes(last, outcomes, buffer);
        self.hosts(last, hosts, buffer);
        self.slowest(last, rest.take(1 + SLOWEST), buffer);
        self.disks(last, rest.take(stores), buffer);
        self.map(last, rest, buffer);
    }
}

/// The lines of the screen that are still free. On a small screen, the last parts have no line.
struct FreeLines(Rect);

impl FreeLines {
    fn take(&mut self, lines: u16) -> Rect {
        let height = lines.min(self.0.height);
        let taken = Rect { height, ..self.0 };
        self.0 = Rect { y: self.0.y + height, height: self.0.height - height, ..self.0 };
        taken
    }
}

impl Screen<'_> {
    fn emphasis(&self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour).bold() } else { Style::new().bold() }
    }

    fn heading(&self) -> Style {
        if self.has_colours { Style::new().fg(Color::Cyan) } else { Style::new().underlined() }
    }

    fn totals(&self, last: &Look, area: Rect, buffer: &mut Buffer) {
        let (live, looks) = (&last.live, self.looks);
        let growth = |counter| looks.growth(counter).map_or(Value::Null, Value::from);
        let saved = looks.growth("client_cacheable_bytes").filter(|sent| *sent > 0.0).map(|sent| {
            (1.0 - looks.growth("origin_cacheable_bytes").unwrap_or(0.0) / sent).max(0.0)
        });
        let cpu = |look: &Look| look.live["cpu_seconds"].as_f64();
        let cores = looks.earlier.as_ref().and_then(cpu).zip(cpu(last)).zip(looks.seconds());
        let cores =
            cores.map_or(Value::Null, |((before, now), seconds)| ((now - before) / seconds).into());
        let figures = [
            format!(
                "{} requests/s, {} hits, {} traffic saved, {}/s to clients",
                rate(&growth("requests")),
                share(self.hit_ratio(last)),
                share(saved),
                bytes(&growth("client_sent_bytes")),
            ),
            format!(
                "memory {} (cached responses {}), {} connections, {} CPUs in use",
                bytes(&live["resident_bytes"]),
                bytes(&live["memory"]["bytes"]),
                count(&live["connections"]["open"]),
                rate(&cores),
            ),
        ];
        let mut rest = FreeLines(area);
        self.head(live).render(rest.take(1), buffer);
        Paragraph::new(figures.map(Line::from).to_vec()).render(rest.take(2), buffer);
        let rates: Vec<u64> = looks.rates.iter().copied().collect();
        let style = if self.has_colours { Style::new().fg(Color::Green) } else { Style::new() };
        let [label, curve] =
            Layout::horizontal([Constraint::Length(16), Constraint::Fill(1)]).areas(rest.take(1));
        let most = rates.iter().max().map_or_else(|| "–".into(), ToString::to_string);
        Line::raw(format!("peak {most}/s")).render(label, buffer);
        Sparkline::default().data(&rates).style(style).render(curve, buffer);
    }

    fn head(&self, live: &Value) -> Line<'_> {
        let milliseconds = |name: &str| live[name].as_f64().unwrap_or(0.0);
        let up = uptime((milliseconds("now_ms") - milliseconds("started_ms")).max(0.0) / 1000.0);
        let version = live["version"].as_str().unwrap_or("of an unknown version");
        let state = match (&self.looks.lost, values(&live["troubles"])) {
            (Some(_), _) => Span::styled("reconnecting", self.emphasis(Color::Red)),
            (None, []) => Span::raw("healthy"),
            (None, [trouble, more @ ..]) => {
                let text = trouble.as_str().unwrap_or_default();
                let more =
                    if more.is_empty() { String::new() } else { format!(" (+{})", more.len()) };
                Span::styled(format!("{text}{more}"), self.emphasis(Color::Red))
            }
        };
        let about = format!("foxy {version} at {}, running for {up}: ", self.looks.address);
        Line::from(vec![Span::styled(about, Style::new().bold()), state])
    }

    /// Returns how many requests of an outcome have ended since the previous query of foxy. Also
    /// returns the histogram of their durations: the end of each bucket, and the number of requests
    /// up to this end.
    fn grown(&self, outcome: &Value) -> (f64, Vec<(f64, f64)>) {
        let earlier = self.looks.earlier.as_ref().map(|look| values(&look.live["outcomes"]));
        let before = earlier.unwrap_or_default().iter().find(|it| it["name"] == outcome["name"]);
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let grown = |of: &dyn Fn(&Value) -> f64| of(outcome) - before.map_or(0.0, of);
        let buckets = values(&outcome["buckets"]).iter().enumerate().map(|(place, bucket)| {
            let end = bucket[0].as_f64().unwrap_or(f64::INFINITY);
            (end, grown(&|it| number(&it["buckets"][place][1])))
        });
        (grown(&|it| number(&it["count"])), buckets.collect())
    }

    fn hit_ratio(&self, last: &Look) -> Option<f64> {
        let outcomes = values(&last.live["outcomes"]);
        let sum = |flag: &str| -> f64 {
            let counted = outcomes.iter().filter(|outcome| outcome[flag] == true);
            counted.map(|outcome| self.grown(outcome).0).sum()
        };
        let all = sum("is_cacheable");
        (all > 0.0).then(|| sum("is_hit") / all)
    }

    fn outcomes(&self, last: &Look, area: Rect, buffer: &mut Buffer) {
        let seconds = self.looks.seconds();
        let mut rows: Vec<_> = values(&last.live["outcomes"])
            .iter()
            .filter(|outcome| outcome["count"].as_u64().unwrap_or(0) > 0)
            .map(|outcome| (self.grown(outcome), outcome))
            .collect();
        rows.sort_by(|((one, _), _), ((other, _), _)| other.total_cmp(one));
        let row = |((grown, buckets), outcome): &GrownOutcome<'_>| {
            let now = seconds.map_or(Value::Null, |seconds| (grown / seconds).into());
            let quantile = |share| time(&json!(quantile::of(buckets, share)));
            let name = outcome["name"].as_str().unwrap_or_default().to_owned();
            let figures = [rate(&now), count(&outcome["count"]), quantile(0.5), quantile(0.99)];
            aligned(name, figures)
        };
        let widths = [13, 7, 8, 7, 7].map(Constraint::Length);
        let heading =
            aligned("outcome".into(), ["per s", "total", "median", "p99"].map(str::to_owned));
        self.table(rows.iter().map(row).collect(), heading, &widths, area, buffer);
    }

    fn hosts(&self, last: &Look, area: Rect, buffer: &mut Buffer) {
        let row = |host: &Value| {
            let hits = host["hits"].as_f64().zip(host["requests"].as_f64());
            let hits = hits.map(|(hits, requests)| hits / requests.max(1.0));
            let name = host["name"].as_str().unwrap_or_default();
            let width = usize::from(area.width).saturating_sub(16);
            aligned(shortened(name, width), [percent(&host["share"]), share(hits)])
        };
        let widths = [Constraint::Fill(1), Constraint::Length(7), Constraint::Length(7)];
        let heading = aligned("host".into(), ["share", "hits"].map(str::to_owned));
        let rows = values(&last.live["traffic"]["hosts"]).iter().map(row).collect();
        self.table(rows, heading, &widths, area, buffer);
    }

    fn slowest(&self, last: &Look, area: Rect, buffer: &mut Buffer) {
        let mut requests: Vec<_> = values(&last.live["traffic"]["requests"]).iter().collect();
        let elapsed = |request: &Value| request["elapsed_us"].as_f64().unwrap_or(0.0);
        requests.sort_by(|one, other| elapsed(other).total_cmp(&elapsed(one)));
        let row = |request: &&Value| {
            let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
            let figures = [count(&request["status"]), time(&json!(elapsed(request) / 1e6))];
            let [status, elapsed] =
                figures.map(|text| Cell::from(Text::from(text).right_aligned()));
            let url = shortened(&text("url"), usize::from(area.width).saturating_sub(29));
            Row::new([elapsed, status, Cell::from(text("outcome")), Cell::from(url)])
        };
        let rows = requests.iter().take(usize::from(SLOWEST)).map(row).collect();
        let heading = ["duration", "status", "outcome", "slowest recent requests"].map(Cell::from);
        let widths = [8, 6, 13].map(Constraint::Length);
        let widths = [&widths[..], &[Constraint::Fill(1)]].concat();
        self.table(rows, Row::new(heading), &widths, area, buffer);
    }

    fn disks(&self, last: &Look, area: Rect, buffer: &mut Buffer) {
        let row = |(number, store): (usize, &Value)| {
            let measures = &store["measures"];
            let growth = |name: &str| {
                let earlier = &self.looks.earlier.as_ref()?.live["stores"][number]["measures"];
                let grown = measures[name].as_f64()? - earlier[name].as_f64()?;
                Some(grown.max(0.0) / self.looks.seconds()?)
            };
            let rate = |name| bytes(&json!(growth(name)));
            let is_out = store["out_of_use"] == true;
            let status = store["status"].as_str().unwrap_or_default();
            let folder = shortened(store["folder"].as_str().unwrap_or_default(), FOLDER_WIDTH);
            aligned(
                folder,
                [
                    bytes(&measures["live_bytes"]),
                    bytes(&measures["capacity_bytes"]),
                    count(&measures["records"]),
                    rate("read_bytes"),
                    rate("written_bytes"),
                    (if is_out { "out of use" } else { status }).to_owned(),
                ],
            )
        };
        let names = ["used", "capacity", "records", "read/s", "written/s", "state"];
        let widths = [FOLDER_WIDTH as u16, 10, 10, 9, 9, 9].map(Constraint::Length);
        let widths = [&widths[..], &[Constraint::Fill(1)]].concat();
        let rows = values(&last.live["stores"]).iter().enumerate().map(row).collect();
        let heading = aligned("store".into(), names.map(str::to_owned));
        self.table(rows, heading, &widths, area, buffer);
    }

    fn map(&self, last: &Look, mut rest: FreeLines, buffer: &mut Buffer) {
        let Some((_, map)) = last.map.as_ref().filter(|(_, map)| map["cells"].is_array()) else {
            return;
        };
        let heading = Line::styled(format!("map ({LEGEND})"), self.heading());
        heading.render(rest.take(1), buffer);
        SmallMap { map, has_colours: self.has_colours }.render(rest.0, buffer);
    }

    fn table(
        &self,
        rows: Vec<Row<'_>>,
        heading: Row<'_>,
        widths: &[Constraint],
        area: Rect,
        buffer: &mut Buffer,
    ) {
        let table = Table::new(rows, widths).header(heading.style(self.heading()));
        Widget::render(table, area, buffer);
    }
}

fn values(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a row with a name, and figures that are aligned to the right.
fn aligned<const N: usize>(name: String, figures: [String; N]) -> Row<'static> {
    let figures = figures.map(|text| Cell::from(Text::from(text).right_aligned()));
    Row::new(std::iter::once(Cell::from(name)).chain(figures))
}

/// Keeps the beginning and the end of a long text.
fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let (begin, end) = (width / 2, width.saturating_sub(width / 2 + 1));
    let begin: String = text.chars().take(begin).collect();
    format!("{begin}…{}", text.chars().skip(length - end).collect::<String>())
}
