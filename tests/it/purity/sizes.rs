//! How long files, functions and lines may be, in every crate and every test.

use std::path::PathBuf;

use super::{crates, files, root, sources_of};

/// The most lines of a file without its inline tests.
const LONGEST: usize = 400;

/// The most lines of a function.
const LONGEST_FUNCTION: usize = 60;

/// The most statements beside the table or the dispatch of a function that may be longer.
const BESIDE: usize = 8;

/// The most columns of a line, as in rustfmt.toml, which leaves comments and literals alone.
const WIDEST: usize = 110;

/// Every Rust file of the repository, by its path.
fn all_files() -> Vec<(String, String)> {
    let name = |path: PathBuf| path.strip_prefix(root()).unwrap().display().to_string();
    let all = ["src", "tests"].into_iter().flat_map(|folder| files(&root().join(folder)));
    all.map(|(path, text)| (name(path), text)).collect()
}

/// A file without the tests at its end.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

#[test]
fn no_file_is_long_and_each_says_its_one_job_first() {
    for (path, text) in all_files() {
        let lines = without_tests(&text).lines().count();
        assert!(lines <= LONGEST, "{path} has {lines} lines without its tests: split it by its jobs");
        assert!(text.starts_with("//! "), "{path} does not say its job in its first line");
    }
}

/// Whether an expression is one table or one dispatch, however it is wrapped.
#[expect(clippy::wildcard_enum_match_arm, reason = "syn's enum may grow")]
fn is_flat(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Match(_) | syn::Expr::Array(_) | syn::Expr::Struct(_) | syn::Expr::Macro(_) => true,
        syn::Expr::ForLoop(each) => {
            each.body.stmts.iter().any(|it| matches!(it, syn::Stmt::Expr(it, _) if is_flat(it)))
        }
        syn::Expr::Call(call) => call.args.iter().any(is_flat),
        _ => false,
    }
}

/// The functions of a file that are too long: neither short nor one table or dispatch; tests do not count.
/// rustfmt ends a function with a brace at the indent of its first line.
fn long_functions(text: &str) -> Vec<String> {
    let lines: Vec<&str> = without_tests(text).lines().collect();
    let mut long = Vec::new();
    for (begin, line) in lines.iter().enumerate() {
        let (indent, code) = line.split_at(line.len() - line.trim_start().len());
        let is_function = code.split_once("fn ").is_some_and(|(before, _)| {
            before.split_whitespace().all(|word| {
                ["async", "const", "pub"].contains(&word) || word.starts_with("pub(") || word.ends_with(')')
            })
        });
        let mut attributes =
            lines[..begin].iter().rev().take_while(|it| it.trim_start().starts_with(['#', '/']));
        if !is_function || code.ends_with('}') || attributes.any(|it| it.ends_with("test]")) {
            continue;
        }
        let end = format!("{indent}}}");
        let length = lines[begin..].iter().take_while(|line| **line != end).count() + 1;
        let text = lines[begin..].iter().take(length).copied().collect::<Vec<_>>().join("\n");
        let Ok(function) = syn::parse_str::<syn::ImplItemFn>(&text) else { continue };
        let statements = &function.block.stmts;
        let flat = statements.iter().filter(|it| matches!(it, syn::Stmt::Expr(it, _) if is_flat(it))).count();
        if length > LONGEST_FUNCTION && (flat == 0 || statements.len() - flat > BESIDE) {
            long.push(function.sig.ident.to_string());
        }
    }
    long
}

#[test]
fn no_function_is_long_that_is_not_one_table_or_dispatch() {
    let sources = crates().into_iter().flat_map(|member| {
        let folder = if member == "." { "src".to_owned() } else { format!("{member}/src") };
        sources_of(&member).into_iter().map(move |(path, text)| (format!("{folder}/{path}"), text))
    });
    let scenarios = all_files().into_iter().filter(|(path, _)| path.starts_with("tests/it/"));
    for (path, text) in sources.chain(scenarios) {
        let long = long_functions(&text);
        assert!(
            long.is_empty(),
            "{path}: {long:?} have more than {LONGEST_FUNCTION} lines: split them into steps with names"
        );
    }
}

#[test]
fn a_long_function_is_found_and_a_long_table_is_none() {
    let steps = "        step();\n".repeat(60);
    let arms = "            1 => 1,\n".repeat(60);
    let steps = format!("impl A {{\n    pub fn steps() {{\n{steps}    }}\n}}\n");
    let table = format!(
        "impl A {{\n    pub(in crate::a) const fn table() {{\n        match 1 {{\n{arms}        }}\n    \
            }}\n}}\n"
    );
    assert_eq!(long_functions(&steps), ["steps"]);
    assert_eq!(long_functions(&table), Vec::<String>::new());
    assert_eq!(long_functions(&steps.replace("    pub fn", "    #[test]\n    pub fn")), Vec::<String>::new());
}

/// What cannot be broken without harm: a row of a table, a diagram, a literal that stands on a line of its
/// own.
fn is_one_piece(line: &str) -> bool {
    let line = line.trim_start();
    let is_drawn = line.starts_with("//") && ["|", "─", "   "].iter().any(|mark| line[2..].contains(mark));
    is_drawn || line.contains('"') || line.starts_with('|') || line.starts_with('<')
}

#[test]
fn no_line_is_wide() {
    // Scripts for machines stand in the box' tests as they are.
    let mut wide = Vec::new();
    for (path, text) in all_files().into_iter().filter(|(path, _)| !path.starts_with("tests/box/tests/")) {
        let lines = (1..).zip(text.lines());
        let lines = lines.filter(|(_, line)| line.chars().count() > WIDEST && !is_one_piece(line));
        wide.extend(lines.map(|(number, _)| format!("{path}:{number}")));
    }
    assert!(wide.is_empty(), "lines of more than {WIDEST} columns: {wide:#?}");
}
