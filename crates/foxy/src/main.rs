//! The program foxy. It parses the command line, runs a command, and returns an exit code. 0 means
//! success. 1 means that a condition of `--fail-if` is met, or that a store is damaged. 2 means
//! invalid arguments or input. 3 means that the operation failed.

mod commands;
mod secret_file;
mod serve;
mod settings;
mod store_at_rest;
mod store_file;
mod users_file;

use foxy_cli::{authority_folder, failure, progress, signals, temporary, terminal};
use std::process::ExitCode;
use terminal::Level;

/// Worker threads allocate bodies, and the store's thread frees them. The C library's allocator
/// would make these threads wait for each other (docs/decisions/allocator.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(feature = "lab")]
    foxy_lab_cli::note_start();
    let matches = match commands::command_line().try_get_matches() {
        Ok(matches) => matches,
        Err(message) => {
            let text = message.render().to_string();
            if message.use_stderr() {
                terminal::report(Level::Error, text.trim_end());
            } else {
                terminal::print(text.trim_end());
            }
            return ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2));
        }
    };
    let ran = signals::outlive_file_limit()
        .map_err(|error| {
            failure::Failure::Failed(format!("cannot install a signal handler: {error}"))
        })
        .and_then(|()| commands::run(&matches));
    match ran {
        Ok(()) => match terminal::failure() {
            None => ExitCode::SUCCESS,
            Some(error) => {
                let text = format!(
                    "foxy: the standard output cannot be written: {error}; free space there"
                );
                terminal::report(Level::Error, &text);
                ExitCode::from(3)
            }
        },
        Err(failure) => {
            if !matches!(failure, failure::Failure::Ended(_)) {
                terminal::report(Level::Error, &format!("foxy: {failure}"));
            }
            failure.exit_code()
        }
    }
}
