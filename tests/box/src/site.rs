//! stub
use crate::control_plane::ControlPlane;
/// s
pub struct Site {}
/// s
pub struct SiteOptions {}
impl SiteOptions { /// f
    pub fn fast() -> Self { Self {} } /// f
    pub fn realistic() -> Self { Self {} } }
/// e
#[derive(Debug, thiserror::Error)]
#[error("none")]
pub struct Error;
impl Site { /// s
    pub async fn start(_c: &ControlPlane, _o: SiteOptions) -> Result<Self, Error> { Ok(Self {}) }
    /// s
    pub fn endpoint(&self) -> String { String::new() }
    /// s
    pub fn region(&self) -> &str { "us-east-1" }
    /// s
    pub async fn stop(self) {}
}
