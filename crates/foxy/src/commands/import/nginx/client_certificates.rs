//! Converts `ssl_verify_client` of nginx. foxy asks the clients of all its TLS listeners alike, so
//! all servers with TLS must have the same settings.

use super::super::report::ImportReason;
use super::NginxImport;
use super::parse::NginxDirective;
use super::scope::Levels;

impl NginxImport {
    pub(super) fn client_certificates(
        &mut self,
        http: &[NginxDirective],
        servers: &[&NginxDirective],
    ) {
        let with_tls = servers.iter().filter(|server| has_tls(server));
        let settings: Vec<_> = with_tls.map(|server| wanted(&Levels::new(http, server))).collect();
        let Some(&(verify, authority, revoked)) = settings.first() else { return };
        let is_same = settings.iter().all(|other| {
            let word =
                |directive: Option<&NginxDirective>| directive.map(|it| it.argument(0).to_owned());
            word(other.0) == word(verify)
                && word(other.1) == word(authority)
                && word(other.2) == word(revoked)
        });
        if let (Some(verify), Some(authority), true) = (verify, authority, is_same) {
            let word = match verify.argument(0) {
                "on" => Some("required"),
                "optional" => Some("optional"),
                _ => None,
            };
            if let Some(word) = word {
                self.draft.push("client-ca", authority.argument(0), &authority.original);
                self.draft.set("client-certificates", word, &verify.original);
                if let Some(revoked) = revoked {
                    self.draft.revoked_certificates(revoked.argument(0), &revoked.original);
                }
                return;
            }
        }
        for verify in settings.iter().filter_map(|(verify, ..)| *verify) {
            let text = "foxy asks the clients of all its TLS listeners alike, and verifies each \
                        certificate";
            self.draft.leave(&verify.original, ImportReason::Opens(text.into()));
        }
    }
}

type WantedDirectives<'d> =
    (Option<&'d NginxDirective>, Option<&'d NginxDirective>, Option<&'d NginxDirective>);

fn has_tls(server: &NginxDirective) -> bool {
    let listens = server.children().iter().filter(|child| child.name() == "listen");
    listens.flat_map(NginxDirective::arguments).any(|word| word == "ssl")
}

/// Returns the directives `ssl_verify_client`, `ssl_client_certificate` and `ssl_crl` in force. The
/// first is `None` if its argument is `off`.
fn wanted<'d>(levels: &Levels<'d>) -> WantedDirectives<'d> {
    let verify = levels.last("ssl_verify_client").filter(|verify| verify.argument(0) != "off");
    (verify, levels.last("ssl_client_certificate"), levels.last("ssl_crl"))
}

#[cfg(test)]
mod tests {
    use super::super::import;
    use crate::commands::import::original_files::OriginalFiles;
    use std::path::Path;

    fn imported(servers: &str) -> (String, usize) {
        let content = format!("http {{ {servers} }}");
        let draft = import(&content, &OriginalFiles::beside(Path::new("a")), true);
        let text = draft.text();
        let lines = text.lines().filter(|line| line.starts_with("client-"));
        let lines: Vec<_> =
            lines.map(|line| line.split("  #").next().unwrap_or_default()).collect();
        let opens = draft.leftovers.iter().filter(|it| it.reason.name() == "permits-more").count();
        (lines.join("; "), opens)
    }

    #[test]
    fn certificates_that_all_servers_with_tls_want_are_asked_for() {
        let server = |lines: &str| {
            format!("server {{ listen 443 ssl; {lines} location / {{ proxy_pass http://a; }} }}")
        };
        let wanted = server("ssl_client_certificate /ca.pem; ssl_verify_client on;");
        let optional = server("ssl_client_certificate /ca.pem; ssl_verify_client optional;");
        let revoked =
            server("ssl_client_certificate /ca.pem; ssl_verify_client on; ssl_crl /ca.crl;");
        let unverified = server("ssl_verify_client optional_no_ca;");
        let plain = "server { listen 80; location / { proxy_pass http://a; } }".to_owned();
        let required = "client-ca = [\"/ca.pem\"]; client-certificates = \"required\"";
        let with_list = format!("{required}; client-crl = [\"/ca.crl\"]");
        for (servers, expected) in [
            (vec![&wanted, &plain], (required.to_owned(), 0)),
            (vec![&revoked, &plain], (with_list, 0)),
            (vec![&wanted, &revoked], (String::new(), 2)),
            (vec![&optional], (required.replace("required", "optional"), 0)),
            (vec![&wanted, &optional], (String::new(), 2)),
            (vec![&wanted, &server("ssl_verify_client off;")], (String::new(), 1)),
            (vec![&unverified], (String::new(), 1)),
            (vec![&plain], (String::new(), 0)),
        ] {
            let servers: Vec<&str> = servers.into_iter().map(String::as_str).collect();
            assert_eq!(imported(&servers.join("\n")), expected, "{servers:?}");
        }
    }
}
