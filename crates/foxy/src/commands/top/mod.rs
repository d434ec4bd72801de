//! `foxy top`: watches a running foxy on the terminal. It asks for the data of the dashboard.

mod map;
mod screen;
mod watch;

use crate::commands::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::terminal;
use clap::{Arg, ArgAction, ArgMatches, Command};
use foxy_base::ascii_json;
use foxy_cli::json_argument;
use foxy_cli::units::parse_positive_duration;
use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::widgets::Widget;
use screen::Screen;
use std::io::IsTerminal;
use std::time::Duration;
use watch::{Looks, News, Watch};

/// Longest time between a key press and its effect.
const KEY_INTERVAL: Duration = Duration::from_millis(100);
/// Size of the frame that `--once` prints.
const ONCE: Rect = Rect { x: 0, y: 0, width: 80, height: 24 };

pub fn command() -> Command {
    let interval = Arg::new("interval").long("interval").value_name("TIME").default_value("1s");
    let once = Arg::new("once").long("once").action(ArgAction::SetTrue);
    let json = json_argument().requires("once");
    let command = Command::new("top")
        .about("Watch rates, outcomes, hosts, slow requests and the disk of a running foxy")
        .long_about(
            "Watch rates, outcomes, hosts, slow requests and the disk of a running foxy, on a \
             terminal of at least 80 columns and 24 lines. The keys q, Esc and Ctrl-C quit. With \
             the environment variable NO_COLOR, the screen has no colours.",
        )
        .arg(interval.value_parser(parse_positive_duration).help("Time between updates"))
        .arg(once.help("Print one frame as text, for scripts"))
        .arg(json.help("Print the counters and the last requests as one JSON object"));
    admin_client::add_to(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let interval = *matches.get_one::<Duration>("interval").expect("has a default");
    let client = AdminClient::new(matches)?;
    let mut looks = Looks::new(client.address());
    if matches.get_flag("json") {
        terminal::print(&ascii_json(&watch::look(&client)?.live.to_string()));
        return Ok(());
    }
    if matches.get_flag("once") {
        looks.add(watch::look(&client)?);
        std::thread::sleep(interval);
        looks.add(watch::look(&client)?);
        terminal::print(frame(&looks).trim_end());
        return Ok(());
    }
    if !std::io::stdout().is_terminal() {
        let text = "foxy top needs a terminal; --once prints one frame as text";
        return Err(Failure::Unusable(text.into()));
    }
    let failed = |error: std::io::Error| Failure::Failed(format!("the terminal: {error}"));
    let watch = Watch::start(client, interval).map_err(failed)?;
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let shown = show(&mut terminal, &watch, &mut looks);
    ratatui::restore();
    shown.map_err(failed)
}

/// Shows frames until the user or a signal ends the command.
fn show(terminal: &mut DefaultTerminal, watch: &Watch, looks: &mut Looks) -> std::io::Result<()> {
    let has_colours = terminal::may_use_colours();
    loop {
        let screen = Screen { looks, has_colours };
        terminal.draw(|frame| frame.render_widget(&screen, frame.area()))?;
        loop {
            if event::poll(KEY_INTERVAL)? {
                match event::read()? {
                    Event::Key(key) if quits(key) => return Ok(()),
                    Event::Resize(..) => break,
                    _ => {}
                }
            }
            match watch.news() {
                Some(News::Look(look)) => looks.add(*look),
                Some(News::Lost(reason)) => looks.lost = Some(reason),
                Some(News::Stop) => return Ok(()),
                None => continue,
            }
            break;
        }
    }
}

fn quits(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

/// Returns a frame as text.
fn frame(looks: &Looks) -> String {
    let mut buffer = Buffer::empty(ONCE);
    Screen { looks, has_colours: false }.render(ONCE, &mut buffer);
    let line = |y| (0..ONCE.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    let lines = (0..ONCE.height).map(|y| line(y).trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
