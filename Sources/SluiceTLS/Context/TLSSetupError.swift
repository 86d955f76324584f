/// Why TLS can't be set up: a file that can't be used, or settings that contradict each other.
public struct TLSSetupError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What it is about, as in a file's path; nil when that is no file.
  public var file: String?
  /// What is wrong with it, and what to do.
  public var problem: String

  public init(file: String? = nil, _ problem: String) {
    self.file = file
    self.problem = problem
  }

  /// "'/etc/sluice/key.pem': isn't the certificate's key; …"
  public var description: String { file.map { "'\($0)': \(problem)" } ?? problem }
}
