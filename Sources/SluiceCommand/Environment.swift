import Glibc

/// The process's environment variables.
public enum Environment {
  /// The value of a variable; nil when it isn't set.
  public static func value(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  /// Every variable, as `NAME=VALUE`.
  public static var all: [String] {
    var result: [String] = []
    var entry = unsafe environ
    while let pointer = unsafe entry.pointee {
      unsafe result.append(String(cString: pointer))
      unsafe entry += 1
    }
    return result
  }

  /// The names of all variables that begin with `prefix`.
  public static func names(withPrefix prefix: String) -> [String] {
    all.map { String($0.prefix { $0 != "=" }) }.filter { $0.hasPrefix(prefix) }.sorted()
  }
}
