//! Converts the directives about the addresses of clients behind a balancer: `set_real_ip_from`,
//! `real_ip_header` and the option `proxy_protocol` of `listen`.

use super::super::draft::Original;
use super::super::report::ImportReason;
use super::NginxImport;
use super::parse::NginxDirective;
use toml::{Table, Value};

impl NginxImport {
    /// Reads the directives of the `http` block and of all servers.
    pub(super) fn balancers(&mut self, http: &[NginxDirective], servers: &[&NginxDirective]) {
        let inside = servers.iter().flat_map(|server| server.children());
        for line in http.iter().chain(inside) {
            match line.name() {
                "set_real_ip_from" => self.real_ips.push(line.clone()),
                "real_ip_header" => self.real_ip_header = Some(line.argument(0).to_owned()),
                _ => {}
            }
        }
    }

    pub(super) fn finish_balancers(&mut self) {
        let header = self.real_ip_header.clone().unwrap_or_else(|| "X-Real-IP".into());
        let is_header = header.eq_ignore_ascii_case("proxy_protocol");
        let is_list = header.eq_ignore_ascii_case("x-forwarded-for");
        let rules = self.tables.iter().flat_map(|tables| &tables.tables.rules);
        let judges = rules.into_iter().any(|(rule, _, _)| is_about_client(rule));
        for line in std::mem::take(&mut self.real_ips) {
            if is_header {
                self.draft.push("proxy-protocol-from", line.argument(0), &line.original);
                continue;
            }
            if is_list {
                self.draft.push("forwarded-from", line.argument(0), &line.original);
            }
            let text = if is_list {
                "rules and limits see the address of the balancer, not of its client"
            } else {
                "foxy reads X-Forwarded-For and Forwarded alone; rules and limits see the address \
                 of the balancer"
            };
            let reason = match judges {
                true => ImportReason::Opens(text.into()),
                false if is_list => ImportReason::Differs(text.into()),
                false => ImportReason::Missing(text.into()),
            };
            self.draft.leave(&line.original, reason);
        }
        let is_listed = self.draft.value("proxy-protocol-from").is_some();
        for original in std::mem::take(&mut self.with_header) {
            self.report_header(&original, is_listed);
        }
    }

    fn report_header(&mut self, original: &Original, is_listed: bool) {
        let reason = if is_listed {
            let text = "foxy also serves clients without a PROXY protocol header here, unless \
                        `proxy-protocol-from` lists them";
            ImportReason::Differs(text.into())
        } else {
            ImportReason::Step("list the balancers in `proxy-protocol-from`".into())
        };
        self.draft.leave(original, reason);
    }
}

/// Returns whether a rule judges requests by the client's address, or counts them for each client.
fn is_about_client(rule: &Table) -> bool {
    let names = |value: &Value| match value {
        Value::Array(all) => all.iter().any(|one| one.get("client").is_some()),
        value => value.get("client").is_some(),
    };
    let limits =
        |then: &Value| then.get("rate-limit").is_some() || then.get("bandwidth-limit").is_some();
    rule.get("when").is_some_and(names)
        || rule.get("unless").is_some_and(names)
        || rule.get("then").is_some_and(limits)
}
