//! Which mistakes in user data are named, and which texts are left alone.

use std::slice;

use pretty_assertions::assert_eq;

use super::form::{Form, Platform};
use super::mistake::Mistake;
use super::mistakes;
use crate::cloud::catalog::Image;

const AL2023: &str = "amazon-eks-node-al2023-x86_64-standard-1.34-v20260901";
const BOTTLEROCKET: &str = "bottlerocket-aws-k8s-1.34-x86_64-v1.47.0-0123abcd";

/// As terraform/modules/freehold/templates/al2023.tftpl makes it.
const MULTIPART: &str = r#"MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/sh
echo "--not-a-boundary"

--//
Content-Type: application/node.eks.aws

---
NODECONFIG
--//--
"#;

const NODE_CONFIG: &str = r"apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: production
    apiServerEndpoint: https://example.com
    certificateAuthority: Y2VydGlmaWNhdGU=
    cidr: 10.100.0.0/16
  kubelet:
    config:
      maxPods: 20
    flags:
      - --node-labels=freehold.dev/dedicated=true,team=data
      - --register-with-taints=freehold.dev/dedicated=true:NoExecute
";

/// As terraform/modules/freehold/templates/bottlerocket.toml.tftpl makes it.
const TOML: &str = r#"[settings.kubernetes]
cluster-name = "production"
api-server = "https://example.com"
cluster-certificate = "Y2VydGlmaWNhdGU="
cluster-dns-ip = "10.100.0.10"
max-pods = 20

[settings.kubernetes.node-labels]
"freehold.dev/dedicated" = "true"

[settings.kubernetes.node-taints]
"freehold.dev/dedicated" = ["true:NoExecute"]
"#;

fn image(name: &str) -> Image {
    Image {
        id: "ami-1".to_owned(),
        name: name.to_owned(),
        is_available: true,
        architecture: "x86_64".to_owned(),
        root_device: "/dev/xvda".to_owned(),
        disks: Vec::new(),
    }
}

fn multipart(config: &str) -> String {
    MULTIPART.replace("NODECONFIG", config)
}

fn syntax(form: Form, error: &str) -> Vec<Mistake> {
    vec![Mistake::Syntax { form, error: error.to_owned() }]
}

fn incomplete(fields: &[&str]) -> Vec<Mistake> {
    vec![Mistake::Incomplete(fields.iter().map(|&field| field.to_owned()).collect())]
}

/// The text with another text in the place of a part of it, which must be there.
fn with(text: &str, part: &str, other: &str) -> String {
    assert!(text.contains(part), "{part}");
    text.replace(part, other)
}

#[test]
fn what_joins_and_takes_databases_has_no_mistake() {
    let second = format!("{NODE_CONFIG}\n--//\nContent-Type: application/node.eks.aws\n\n{NODE_CONFIG}");
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, NODE_CONFIG);
    let without_freehold = with(NODE_CONFIG, "freehold.dev/dedicated=true,", "");
    let startup =
        with(NODE_CONFIG, "=true:NoExecute", "=true:NoExecute,ebs.csi.aws.com/agent-not-ready:NoExecute");
    for (name, text, image_name) in [
        ("a multipart text", multipart(NODE_CONFIG), AL2023),
        ("two NodeConfigs", multipart(&second), AL2023),
        ("a NodeConfig in base64", multipart(&encoded), AL2023),
        ("a NodeConfig alone", NODE_CONFIG.to_owned(), AL2023),
        ("a NodeConfig without our label", without_freehold, AL2023),
        ("a startup taint", startup, AL2023),
        ("a script that does what nodeadm does", "#!/bin/sh\nnodeadm init".to_owned(), AL2023),
        ("TOML", TOML.to_owned(), BOTTLEROCKET),
        ("TOML on an image of another name", TOML.to_owned(), "golden"),
        (
            "a NodeConfig that the image completes",
            with(NODE_CONFIG, "    cidr: 10.100.0.0/16\n", ""),
            "golden",
        ),
        ("a script", "#!/bin/bash\n[settings.kubernetes]".to_owned(), "golden"),
        ("cloud-init", "#cloud-config\nruncmd: []".to_owned(), "golden"),
        ("nothing", String::new(), "golden"),
    ] {
        assert_eq!(mistakes(&text, Some(&image(image_name))), [], "{name}");
    }
}

#[test]
fn a_part_that_is_no_text_is_left_alone() {
    // gzip's first bytes.
    assert_eq!(mistakes(&multipart("H4sIAAAAAAAA/w=="), Some(&image(AL2023))), []);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn mistakes_are_named_with_their_place() {
    let wrong_form = |platform, form| vec![Mistake::Form { platform, form }];
    let taint = |text: &str| vec![Mistake::Taint(text.to_owned())];
    let rows: Vec<(&str, String, &str, Vec<Mistake>)> = vec![
        ("too long", format!("#!/bin/sh\n{}", "é".repeat(8192)), "golden", vec![Mistake::TooLong(16_394)]),
        (
            "a script on Bottlerocket",
            "#!/bin/sh".to_owned(),
            BOTTLEROCKET,
            wrong_form(Platform::Bottlerocket, Form::Script),
        ),
        (
            "a NodeConfig on Bottlerocket",
            multipart(NODE_CONFIG),
            BOTTLEROCKET,
            wrong_form(Platform::Bottlerocket, Form::Mime),
        ),
        ("TOML on Amazon Linux", TOML.to_owned(), AL2023, wrong_form(Platform::Al2023, Form::Bottlerocket)),
        (
            "no last boundary",
            with(&multipart(NODE_CONFIG), "--//--", ""),
            AL2023,
            syntax(Form::Mime, "its last line, --//--, is absent"),
        ),
        (
            "no boundary",
            with(&multipart(NODE_CONFIG), "; boundary=\"//\"", ""),
            "golden",
            syntax(Form::Mime, "its Content-Type has no boundary"),
        ),
        (
            "another kind",
            multipart(&with(NODE_CONFIG, "kind: NodeConfig", "kind: Node")),
            AL2023,
            syntax(Form::NodeConfig, "its apiVersion and kind must be node.eks.aws/v1alpha1 and NodeConfig"),
        ),
        (
            "YAML that does not end",
            with(NODE_CONFIG, "name: production", "name: [production"),
            AL2023,
            syntax(
                Form::NodeConfig,
                "did not find expected ',' or ']' at line 6 column 22, while parsing a flow sequence \
                 at line 5 column 11",
            ),
        ),
        (
            "no cluster",
            with(NODE_CONFIG, "    name: production\n", ""),
            AL2023,
            incomplete(&["spec.cluster.name"]),
        ),
        (
            "a table twice",
            format!("{TOML}[settings.kubernetes]\n"),
            "golden",
            syntax(Form::Bottlerocket, "duplicate key in line 13"),
        ),
        (
            "no name and an empty certificate",
            with(&with(TOML, "cluster-name = \"production\"\n", ""), "Y2VydGlmaWNhdGU=", ""),
            BOTTLEROCKET,
            incomplete(&["settings.kubernetes.cluster-name", "settings.kubernetes.cluster-certificate"]),
        ),
        (
            "another value of the label",
            with(NODE_CONFIG, "dedicated=true,", "dedicated=yes,"),
            AL2023,
            vec![Mistake::Label("yes".to_owned())],
        ),
        (
            "another value of the label in TOML",
            with(TOML, "dedicated\" = \"true\"", "dedicated\" = \"yes\""),
            "golden",
            vec![Mistake::Label("yes".to_owned())],
        ),
        (
            "our taint with another effect",
            with(NODE_CONFIG, "true:NoExecute", "true:NoSchedule"),
            AL2023,
            taint("freehold.dev/dedicated=true:NoSchedule"),
        ),
        (
            "another taint in the kubelet's configuration",
            with(
                NODE_CONFIG,
                "maxPods: 20",
                "registerWithTaints: [{key: gpu, effect: NoSchedule}, {key: soft, effect: PreferNoSchedule}]",
            ),
            "golden",
            taint("gpu:NoSchedule"),
        ),
        (
            "another taint in TOML",
            with(TOML, "[\"true:NoExecute\"]", "[\"true:NoExecute\"]\nteam = \"data:NoExecute\""),
            BOTTLEROCKET,
            taint("team=data:NoExecute"),
        ),
        ("few pods", with(NODE_CONFIG, "maxPods: 20", "maxPods: 2"), AL2023, vec![Mistake::MaxPods(2)]),
        ("few pods in TOML", with(TOML, "= 20", "= 1"), BOTTLEROCKET, vec![Mistake::MaxPods(1)]),
    ];
    for (name, text, image_name, expected) in rows {
        assert_eq!(mistakes(&text, Some(&image(image_name))), expected, "{name}");
    }
}

#[test]
fn without_its_image_only_the_text_itself_is_judged() {
    assert_eq!(mistakes("#!/bin/sh", None), []);
    let few = with(TOML, "= 20", "= 1");
    assert_eq!(mistakes(&few, None), slice::from_ref(&Mistake::MaxPods(1)));
}
