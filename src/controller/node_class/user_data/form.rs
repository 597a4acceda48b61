//! The forms of user data, and the images that read them. Pure.

/// The form of user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A MIME multipart text.
    Mime,
    /// A NodeConfig in YAML, which nodeadm reads.
    NodeConfig,
    /// Bottlerocket's settings in TOML.
    Bottlerocket,
    /// A script.
    Script,
    /// Another form that cloud-init reads.
    CloudInit,
    /// A form that is not recognised.
    Other,
}

/// How cloud-init recognises what is no script (its documentation, "User data formats").
const CLOUD_INIT: [&str; 6] =
    ["#cloud-config", "#cloud-boothook", "#include", "#part-handler", "## template:", "#upstart-job"];

impl Form {
    /// By how the text begins, or what is in it.
    pub fn of(user_data: &str) -> Self {
        let text = user_data.trim_start();
        let begins = |head: &str| text.get(..head.len()).is_some_and(|it| it.eq_ignore_ascii_case(head));
        let has_line = |is: &dyn Fn(&str) -> bool| text.lines().map(str::trim).any(is);
        if text.starts_with("#!") {
            Self::Script
        } else if CLOUD_INIT.iter().any(|head| text.starts_with(head)) {
            Self::CloudInit
        } else if begins("MIME-Version:") || begins("Content-Type:") {
            Self::Mime
        } else if has_line(&|line| line.starts_with("apiVersion:") && line.contains("node.eks.aws/")) {
            Self::NodeConfig
        } else if has_line(&|line| line.starts_with("[settings") || line.starts_with("settings.")) {
            Self::Bottlerocket
        } else {
            Self::Other
        }
    }
}

/// An image whose name says what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// EKS' image of Amazon Linux 2023.
    Al2023,
    /// Bottlerocket for Kubernetes.
    Bottlerocket,
}

impl Platform {
    /// By the names that their publishers give them (EKS user guide, "Create nodes with optimized Amazon
    /// Linux AMIs" and "Create nodes with optimized Bottlerocket AMIs"); none of an image of another name.
    pub fn of(image_name: &str) -> Option<Self> {
        if image_name.starts_with("amazon-eks-node-al2023-") {
            Some(Self::Al2023)
        } else if image_name.starts_with("bottlerocket-aws-k8s-") {
            Some(Self::Bottlerocket)
        } else {
            None
        }
    }

    /// Whether a machine of it can join by user data of this form. A script may do on Amazon Linux what
    /// nodeadm does; Bottlerocket runs none.
    pub fn reads(self, form: Form) -> bool {
        match self {
            Self::Al2023 => form != Form::Bottlerocket,
            Self::Bottlerocket => form == Form::Bottlerocket,
        }
    }
}
