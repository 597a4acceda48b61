//! Links between pages: the file and the heading that each names exist.

use std::collections::BTreeSet;

use super::{file, pages, root};

/// The anchor of a heading, as GitHub and GitLab make it: small letters, digits, `-` and `_`.
fn anchor(heading: &str) -> String {
    let kept = |letter: char| letter.is_alphanumeric() || "-_ ".contains(letter);
    heading.to_lowercase().chars().filter(|letter| kept(*letter)).collect::<String>().replace(' ', "-")
}

fn anchors(page: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in page.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if let Some(heading) = line.trim_start_matches('#').strip_prefix(' ')
            && line.starts_with('#')
            && !is_code
        {
            found.insert(anchor(heading));
        }
    }
    found
}

/// What the links of a page name, but for those to other sites.
fn targets(page: &str) -> Vec<&str> {
    let links = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.filter(|link| !link.contains("://") && !link.contains(char::is_whitespace)).collect()
}

#[test]
fn every_link_between_pages_leads_to_a_file_and_a_heading_that_exist() {
    let mut broken = Vec::new();
    for (page, text) in pages() {
        for link in targets(&text) {
            let (path, heading) = link.split_once('#').map_or((link, None), |(path, it)| (path, Some(it)));
            let folder = root().join(&page).parent().unwrap().to_owned();
            let target = if path.is_empty() { root().join(&page) } else { folder.join(path) };
            let is_there = match heading {
                None => target.exists(),
                Some(heading) => {
                    target.is_file() && anchors(&file(&target.display().to_string())).contains(heading)
                }
            };
            if !is_there {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_heading_is_found_by_the_anchor_that_is_made_of_it() {
    let page =
        "# A page\n\n## Retained volumes: `freehold retained`\n```sh\n# no heading\n```\n### NodeGone\n";
    let expected = ["a-page", "nodegone", "retained-volumes-freehold-retained"].map(str::to_owned);
    assert_eq!(anchors(page), BTreeSet::from(expected));
}
