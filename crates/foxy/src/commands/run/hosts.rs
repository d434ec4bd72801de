//! The public package registries whose HTTPS downloads `foxy run` caches by default. A published
//! file of these registries never changes. The list has no host with private pages or repositories.

use foxy_base::HostPattern;

/// Each host, with the programs that download from it, for `--help`.
const REGISTRIES: &[(&str, &str)] = &[
    ("pypi.org", "pip, uv, poetry"),
    ("files.pythonhosted.org", "pip, uv, poetry"),
    ("conda.anaconda.org", "conda, mamba, pixi"),
    ("repo.anaconda.com", "conda"),
    ("registry.npmjs.org", "npm, pnpm"),
    ("registry.yarnpkg.com", "yarn"),
    ("nodejs.org", "nvm, node-gyp"),
    ("index.crates.io", "cargo"),
    ("static.crates.io", "cargo"),
    ("static.rust-lang.org", "rustup"),
    ("proxy.golang.org", "go"),
    ("sum.golang.org", "go"),
    ("rubygems.org", "gem, bundler"),
    ("repo.maven.apache.org", "mvn, gradle"),
    ("repo1.maven.org", "mvn, gradle"),
    ("plugins.gradle.org", "gradle"),
    ("api.nuget.org", "dotnet"),
    ("repo.packagist.org", "composer"),
    ("repo.hex.pm", "mix, rebar3"),
    ("hackage.haskell.org", "cabal"),
    ("deb.debian.org", "apt"),
    ("security.debian.org", "apt"),
    ("archive.ubuntu.com", "apt"),
    ("security.ubuntu.com", "apt"),
    ("dl-cdn.alpinelinux.org", "apk"),
];

pub fn registries() -> Vec<HostPattern> {
    REGISTRIES.iter().map(|(host, _)| host.parse().expect("a test reads them all")).collect()
}

pub fn table() -> String {
    REGISTRIES.iter().map(|(host, programs)| format!("  {host:<24} {programs}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_is_valid_and_listed_once() {
        let hosts = registries();
        assert!(hosts.iter().all(|host| matches!(host, HostPattern::Within(_))));
        for (index, host) in hosts.iter().enumerate() {
            assert!(!hosts[..index].iter().any(|other| other.covers(host)), "{host}");
        }
        assert!(table().contains("  pypi.org                 pip"));
    }
}
