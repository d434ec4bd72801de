//! `foxy user`: adds users to the file of `users-file` and removes them.

use crate::failure::Failure;
use crate::terminal::{self, Level};
use crate::users_file;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::json_argument;
use foxy_proxy::core::users::{password_line, token_line};
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

pub fn command() -> Command {
    let file = Arg::new("file").value_name("FILE").required(true);
    let file = file.value_parser(value_parser!(PathBuf)).help("File of the setting `users-file`");
    let name = Arg::new("name").value_name("NAME").required(true).help("Name of the user");
    let with_name = |command: Command| command.arg(file.clone()).arg(name.clone());
    Command::new("user")
        .about("Add, remove or list the users of a proxy")
        .long_about(
            "Add, remove or list the users of a proxy.\n\n\
             The users file contains hashes of passwords and tokens. After `foxy reload`, a \
             running foxy uses the changed file.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(with_name(Command::new("add").about(
            "Add a user or change a password; reads the password from terminal or standard input",
        )))
        .subcommand(with_name(
            Command::new("token").about(
                "Make a token, which programs send instead of a password, and print it once",
            ),
        ))
        .subcommand(with_name(Command::new("remove").about("Remove a user")))
        .subcommand(
            Command::new("list").about("List the users").arg(file.clone()).arg(json_argument()),
        )
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let Some((action, matches)) = matches.subcommand() else {
        return Err(Failure::Unusable(
            "no command is given; `foxy user --help` lists the commands".into(),
        ));
    };
    let file = matches.get_one::<PathBuf>("file").expect("clap requires it");
    if action == "list" {
        return list(file, matches.get_flag("json"));
    }
    let name = matches.get_one::<String>("name").expect("clap requires it");
    let had = match action {
        "add" => {
            let line = password_line(name, password()?.as_bytes()).map_err(Failure::Unusable)?;
            users_file::replace(file, name, Some(&line))?
        }
        "token" => {
            let (token, line) = token_line(name).map_err(Failure::Unusable)?;
            let had = users_file::replace(file, name, Some(&line))?;
            terminal::print(&token);
            had
        }
        _ => users_file::replace(file, name, None)?,
    };
    let done = match (action, had) {
        ("remove", false) => {
            let text = format!("{} has no user {name:?}", file.display());
            return Err(Failure::Unusable(text));
        }
        ("remove", true) => "removed",
        (_, true) => "changed",
        (_, false) => "added",
    };
    let text = format!("foxy: {done} {name}; `foxy reload` puts the change in force");
    terminal::report(Level::Info, &text);
    Ok(())
}

fn list(file: &Path, as_json: bool) -> Result<(), Failure> {
    let book = users_file::read(file)?;
    let proof = |has_token| if has_token { "token" } else { "password" };
    let users = book.names().map(|(name, has_token)| (name, proof(has_token)));
    if as_json {
        let user = |(name, proof)| json!({ "name": name, "proof": proof });
        terminal::print(&json!({ "users": users.map(user).collect::<Vec<_>>() }).to_string());
        return Ok(());
    }
    users.for_each(|(name, proof)| terminal::print(&format!("{name}\t{proof}")));
    Ok(())
}

/// Reads a password: twice from the terminal, or one line from standard input.
fn password() -> Result<String, Failure> {
    let unreadable = |error| Failure::Failed(format!("cannot read the password: {error}"));
    if !std::io::stdin().is_terminal() {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(unreadable)?;
        return Ok(line.trim_end_matches(['\n', '\r']).to_owned());
    }
    let first = rpassword::prompt_password("Password: ").map_err(unreadable)?;
    let second = rpassword::prompt_password("Password again: ").map_err(unreadable)?;
    if first != second {
        return Err(Failure::Unusable("the two passwords differ; try again".into()));
    }
    Ok(first)
}
