//! Pages of `docs` that people wrote, against what they speak of: every reason, alert, IAM statement, test,
//! link and manifest in them exists, and none is left out.

mod links;
mod named;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

use freehold::api::{Backup, BackupSchedule, Database, DatabaseUser, Reason};
use freehold::definitions;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use pretty_assertions::assert_eq;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

use crate::kit::chart::documents;
use crate::kit::test_env::{control_plane, run};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn file(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The pages of the documentation with the README, by their paths.
fn pages() -> Vec<(String, String)> {
    let mut paths = crate::purity::paths(&root().join("docs"));
    paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
    paths.extend(["README.md", "CONTRIBUTING.md"].map(|path| root().join(path)));
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    let mut pages: Vec<_> = paths.iter().map(|path| (name(path), file(&name(path)))).collect();
    pages.sort();
    pages
}

/// The names in backticks that lines begin with, each once; `mark` is what comes before them (`### `, `| `).
fn entries(page: &str, mark: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let text = file(page);
    let cells = text.lines().filter_map(|line| line.strip_prefix(mark)?.split(" | ").next());
    let cells = cells.filter(|cell| cell.starts_with('`'));
    for name in cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
        assert!(found.insert(name.to_owned()), "{page} has two entries for {name}");
    }
    found
}

#[test]
fn every_reason_has_one_entry_in_troubleshooting() {
    let reasons: BTreeSet<String> = Reason::iter().map(|reason| reason.as_str().to_owned()).collect();
    let entries = entries("docs/troubleshooting.md", "| ");
    let without_entry: Vec<_> = reasons.difference(&entries).collect();
    let of_no_reason: Vec<_> = entries.difference(&reasons).collect();
    assert!(without_entry.is_empty(), "a row in a table of docs/troubleshooting.md for {without_entry:?}");
    assert!(of_no_reason.is_empty(), "rows of docs/troubleshooting.md without a reason: {of_no_reason:?}");
}

#[test]
fn every_alert_has_its_runbook() {
    let rules = documents(&file("charts/freehold/files/rules.yaml")).remove(0);
    let groups = rules["groups"].as_array().unwrap().iter();
    let alerts = groups.flat_map(|group| group["rules"].as_array().unwrap());
    let alerts: BTreeSet<String> = alerts.map(|rule| rule["alert"].as_str().unwrap().to_owned()).collect();
    let page = file("docs/runbooks.md");
    let sections = page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned);
    assert_eq!(sections.collect::<BTreeSet<_>>(), alerts);
}

#[test]
fn every_statement_of_the_operators_policy_is_explained() {
    let policy = file("terraform/modules/iam/policy.json.tftpl");
    let sids = policy.split("\"Sid\": \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    assert_eq!(entries("docs/iam.md", "### "), sids.collect::<BTreeSet<_>>());
}

/// The tests that the security page names: `file::name`.
fn named_tests(page: &str) -> Vec<(&str, &str)> {
    let is_rust = |path: &str| Path::new(path).extension().is_some_and(|end| end == "rs");
    let code = page.split('`').skip(1).step_by(2);
    code.filter_map(|code| code.split_once("::").filter(|(path, _)| is_rust(path))).collect()
}

#[test]
fn every_test_that_the_security_page_names_is_there() {
    let page = file("docs/security.md");
    let tests = named_tests(&page);
    assert!(tests.len() > 30, "{}", tests.len());
    for (path, name) in tests {
        assert!(file(path).contains(&format!("fn {name}(")), "{path} has no test {name}");
    }
}

#[test]
fn every_control_of_the_security_page_has_its_row() {
    let rows = entries("docs/security.md", "| ");
    let expected: BTreeSet<String> = (1..=42).map(|number| format!("SEC-{number:02}")).collect();
    assert_eq!(rows, expected);
}

/// The blocks of code of a page in these languages.
fn blocks(page: &str, languages: [&str; 2]) -> Vec<String> {
    let is_wanted =
        |block: &&str| languages.iter().any(|language| block.starts_with(&format!("{language}\n")));
    let blocks = page.split("```").skip(1).step_by(2).filter(is_wanted);
    blocks.map(|block| block.split_once('\n').unwrap().1.to_owned()).collect()
}

/// Sends the API server one of our objects without effect; a field that it does not know is an error.
async fn try_out(page: &str, manifest: &Value) {
    match manifest["kind"].as_str() {
        Some("Backup") => try_out_as::<Backup>(page, manifest).await,
        Some("BackupSchedule") => try_out_as::<BackupSchedule>(page, manifest).await,
        Some("DatabaseUser") => try_out_as::<DatabaseUser>(page, manifest).await,
        kind => {
            assert_eq!(kind, Some("Database"), "{page}");
            try_out_as::<Database>(page, manifest).await;
        }
    }
}

async fn try_out_as<K>(page: &str, manifest: &Value)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    let mut manifest = manifest.clone();
    manifest["metadata"]["namespace"] = "default".into();
    let api = Api::<K>::namespaced(control_plane().await.client(), "default");
    let trial = PatchParams::apply("documentation").dry_run().validation_strict();
    api.patch(name, &trial, &Patch::Apply(&manifest)).await.unwrap_or_else(|error| panic!("{page}: {error}"));
}

/// A Database with this part of a spec; none if the part is of another kind.
fn completed(part: &Value) -> Option<Value> {
    let part = part.as_object()?;
    if !["access", "config", "engine", "storage"].iter().any(|field| part.contains_key(*field)) {
        return None;
    }
    let mut spec = json!({"engine": {"type": "questdb", "version": "9.3.4"}, "storage": {"size": "100Gi"}});
    spec.as_object_mut().unwrap().extend(part.clone());
    Some(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
        "metadata": {"name": "part"}, "spec": spec,
    }))
}

#[test]
fn every_manifest_in_the_documentation_is_accepted() {
    run(async {
        let mut tried = 0;
        for (page, text) in pages() {
            for block in blocks(&text, ["yaml", "json"]) {
                let is_whole = block.contains("freehold.dev/v1alpha1");
                if !is_whole && !block.starts_with("spec:") {
                    continue;
                }
                for manifest in documents(&block) {
                    let manifest = if is_whole { Some(manifest) } else { completed(&manifest["spec"]) };
                    if let Some(manifest) = manifest {
                        try_out(&page, &manifest).await;
                        tried += 1;
                    }
                }
            }
        }
        assert!(tried >= 6, "{tried}");
    });
}

/// The header of `kubectl get` for each kind, its columns without the spaces between them.
fn headers() -> Vec<Vec<String>> {
    let columns = |definition: &CustomResourceDefinition| {
        let columns = definition.spec.versions[0].additional_printer_columns.iter().flatten();
        let shown = columns.filter(|column| column.priority.unwrap_or_default() == 0);
        ["NAME".to_owned()].into_iter().chain(shown.map(|column| column.name.to_uppercase())).collect()
    };
    definitions::all().iter().map(columns).collect()
}

#[test]
fn every_table_of_our_kinds_in_the_documentation_has_the_columns_that_kubectl_prints() {
    let headers = headers();
    let mut found = BTreeSet::new();
    for (page, text) in pages() {
        for line in text.lines().filter(|line| line.starts_with("NAME ")) {
            let columns: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            // StorageClasses are Kubernetes' own.
            if columns.iter().any(|column| column == "PROVISIONER") {
                continue;
            }
            assert!(headers.contains(&columns), "{page}: {line}");
            found.insert(columns);
        }
    }
    assert!(found.len() >= 2, "{found:?}");
}

#[test]
fn every_page_is_in_the_index() {
    let index = file("docs/README.md");
    for (page, _) in pages() {
        let Some(page) = page.strip_prefix("docs/").filter(|page| *page != "README.md") else { continue };
        let is_part = page.starts_with("decisions/") && page != "decisions/README.md";
        assert!(is_part || index.contains(&format!("({page})")), "docs/README.md does not name {page}");
    }
}
