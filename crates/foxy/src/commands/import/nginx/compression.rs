//! Converts `gzip` of nginx to the settings for compression, which hold for all hosts of foxy.

use super::super::report::ImportReason;
use super::NginxImport;
use super::parse::NginxDirective;

impl NginxImport {
    pub(super) fn compression(&mut self, http: &[NginxDirective]) {
        let mut all = Vec::new();
        collect(http, &mut all);
        let find = |name: &str| all.iter().find(|line| line.name() == name);
        let Some(on) = all.iter().find(|line| line.name() == "gzip" && line.argument(0) == "on")
        else {
            return;
        };
        self.draft.push("compress", "gzip", &on.original);
        let text = "foxy compresses what it stores, for all hosts";
        self.draft.leave(&on.original, ImportReason::Differs(text.into()));
        if let Some(least) = find("gzip_min_length") {
            let size = least.argument(0).to_ascii_uppercase();
            self.draft.set("compress-min", size, &least.original);
        }
        let types = find("gzip_types").filter(|line| line.argument(0) != "*");
        let original = types.map_or(&on.original, |line| &line.original);
        self.draft.push("compress-types", "text/html", original);
        for kind in types.iter().flat_map(|line| line.arguments()) {
            self.draft.push("compress-types", kind.as_str(), original);
        }
    }
}

fn collect<'d>(lines: &'d [NginxDirective], all: &mut Vec<&'d NginxDirective>) {
    for line in lines {
        all.push(line);
        collect(line.children(), all);
    }
}
