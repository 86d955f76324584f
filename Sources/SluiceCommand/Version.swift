/// The version of both programs.
public enum Version {
  public static let text = "0.1.0"

  /// What `--version` prints.
  public static func line(of program: String) -> String { "\(program) \(text)\n" }
}
