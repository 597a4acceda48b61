//! A page of the documentation as its reader follows it: every manifest is applied and every command run.

use serde_json::{Value, json};

use super::adopter::environment;
use super::shell;
use super::test_env::TestEnv;

/// One block of a page: its language and its text.
pub struct Block {
    language: String,
    text: String,
}

impl Block {
    /// The block with what its reader writes in place of these words.
    pub fn with(&self, words: &str, written: &str) -> Self {
        assert!(self.text.contains(words), "{words} is not in\n{}", self.text);
        Self { language: self.language.clone(), text: self.text.replace(words, written) }
    }

    /// The spec of the manifest.
    pub fn spec(&self) -> Value {
        serde_norway::from_str::<Value>(&self.text).unwrap()["spec"].take()
    }
}

/// What a page has its reader do, in its order.
pub fn blocks(page: &str) -> Vec<Block> {
    let path = format!("{}/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let block = |block: &str| {
        let (language, text) = block.split_once('\n').unwrap();
        Block { language: language.to_owned(), text: text.to_owned() }
    };
    text.split("```").skip(1).step_by(2).map(block).collect()
}

/// The text of a block as it is for this test: its namespace, cluster and NodeClass.
fn of_test(env: &TestEnv, block: &Block) -> String {
    let text = block.text.replace("team-a", &env.name).replace("ID_OF_THE_CLUSTER", &env.name);
    if block.language != "yaml" {
        return text;
    }
    let mut manifest: Value = serde_norway::from_str(&text).unwrap();
    if manifest["kind"] == "Database" {
        manifest["spec"]["nodeClassName"] = json!(env.name);
    }
    manifest.to_string()
}

/// Runs a command of the shell as a person does; gives what it printed.
async fn sh(env: &TestEnv, page: &str, script: &str) -> String {
    let printed = shell::run(&env.control_plane, environment(env, &env.site.endpoint()), script).await;
    printed.unwrap_or_else(|said| panic!("{page}: {script}\n{said}"))
}

/// Does what the block of a page says; gives what its command printed.
pub async fn run(env: &TestEnv, page: &str, block: &Block) -> String {
    let text = of_test(env, block);
    let script = match block.language.as_str() {
        "yaml" => format!("kubectl apply --filename - <<'END'\n{text}\nEND"),
        "sh" => text,
        other => panic!("{page} has a block in {other:?}"),
    };
    sh(env, page, &script).await
}

/// Does what the page says; gives what its commands printed.
pub async fn follow(env: &TestEnv, page: &str) -> String {
    let mut printed = String::new();
    for block in blocks(page) {
        printed.push_str(&run(env, page, &block).await);
    }
    printed
}
