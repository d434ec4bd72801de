//! Asks a running foxy's admin server: where it is, with which token, and one request.

use crate::failure::Failure;
use crate::serve::admin::access::read_token_word;
use crate::settings;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::machine::Machine;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// For the whole answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Adds the flags that say which foxy is meant.
pub fn add_to(command: Command) -> Command {
    let flag =
        |name: &'static str, value, help| Arg::new(name).long(name).value_name(value).help(help);
    command
        .arg(
            flag(
                "config",
                "FILE",
                "The configuration file of the running foxy [default: as for foxy serve]",
            )
            .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            flag("admin", "ADDRESS", "Where its admin server listens [default: as configured]")
                .value_parser(value_parser!(SocketAddr)),
        )
        .arg(
            flag(
                "admin-token-file",
                "FILE",
                "A file with the token it asks for [default: as configured]",
            )
            .value_parser(value_parser!(PathBuf)),
        )
}

/// A running foxy's admin server.
pub struct AdminClient {
    address: SocketAddr,
    authorization: String,
}

impl AdminClient {
    /// The one the flags and the configuration name.
    ///
    /// # Errors
    /// The configuration is unsound, there is no admin server, or its token cannot be read.
    pub fn new(matches: &ArgMatches) -> Result<Self, Failure> {
        let file = matches.get_one::<PathBuf>("config").map(PathBuf::as_path);
        let loaded = settings::load(file, None, &Machine::look())
            .map_err(|complaints| Failure::Unusable(complaints.to_string()))?;
        let settings = loaded.settings;
        let given = matches.get_one::<SocketAddr>("admin").copied().or(settings.network.admin);
        let address = given.filter(|address| address.port() != 0).ok_or_else(|| {
            Failure::Unusable(
                "the configuration names no admin server; name it with --admin ADDRESS".into(),
            )
        })?;
        let token_file = matches
            .get_one::<PathBuf>("admin-token-file")
            .cloned()
            .or(settings.access.admin_token_file);
        let authorization = match token_file {
            Some(path) => format!("Authorization: Bearer {}\r\n", read_token_word(&path)?),
            None => String::new(),
        };
        Ok(Self { address, authorization })
    }

    /// Sends a request and gives the body of the answer.
    ///
    /// # Errors
    /// Nothing answers there, or the answer is a refusal: its text is the message.
    pub fn ask(&self, method: &str, target: &str, body: &str) -> Result<String, Failure> {
        let Self { address, authorization } = self;
        let unreachable = |error: std::io::Error| {
            let text = format!(
                "no foxy answers at {address}: {error}; start one, or name its admin server with \
                 --admin"
            );
            Failure::Failed(text)
        };
        let mut stream = TcpStream::connect_timeout(address, PATIENCE).map_err(unreachable)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(unreachable)?;
        let length = body.len();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {address}\r\n{authorization}Content-Length: \
             {length}\r\n\r\n"
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body.as_bytes()))
            .map_err(unreachable)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map_err(unreachable)?;
        judged(&answer).map_err(|text| Failure::Failed(format!("{address}: {text}")))
    }
}

/// The body of an answer that is no refusal.
fn judged(answer: &[u8]) -> Result<String, String> {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut fields);
    let parsed = response.parse(answer);
    let (Ok(httparse::Status::Complete(length)), Some(status)) = (parsed, response.code) else {
        return Err("what answers there is no foxy; name its admin server with --admin".into());
    };
    let body = String::from_utf8_lossy(&answer[length..]).into_owned();
    match status {
        200 => Ok(body),
        404 | 405 => {
            Err("this foxy does not know how; is it another version, or the proxy's own address?"
                .into())
        }
        _ => Err(format!("{} ({status})", body.trim_end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusals_text_is_the_message() {
        let cases = [
            ("HTTP/1.1 200 OK\r\n\r\n{}\n", Ok("{}\n".to_owned())),
            ("HTTP/1.1 403 Forbidden\r\nA: b\r\n\r\nnot you\n", Err("not you (403)".to_owned())),
        ];
        for (answer, expected) in cases {
            assert_eq!(judged(answer.as_bytes()), expected);
        }
        assert!(judged(b"SSH-2.0-x\r\n").expect_err("no HTTP").contains("no foxy"));
        assert!(
            judged(b"HTTP/1.1 404 Not Found\r\n\r\n")
                .expect_err("not there")
                .contains("another version")
        );
    }
}
