import Glibc
import SluiceCommand
import SluiceStore

/// The name of recurring exports, with a placeholder for the time.
struct BackupName {
  static let placeholder = "{time}"

  private let template: String
  private let count: Int?

  /// - Parameter count: how many exports to keep; nil for all.
  init(_ template: String, keeping count: Int?) {
    self.template = template
    self.count = count
  }

  /// The path at a time, in milliseconds since 1970.
  func path(at time: Int64) -> String { template.replacing(Self.placeholder, with: Self.text(time)) }

  /// "20260203T040506Z": texts sort by time.
  static func text(_ time: Int64) -> String {
    WallTime.format(time).prefix { $0 != "." }.filter { $0 != "-" && $0 != ":" } + "Z"
  }

  /// Whether a text has the format of ``text(_:)``.
  static func isTime(_ text: Substring) -> Bool {
    let digits = text.utf8.enumerated().allSatisfy { index, byte in
      switch index {
      case 8: byte == UInt8(ascii: "T")
      case 15: byte == UInt8(ascii: "Z")
      default: (0x30...0x39).contains(byte)
      }
    }
    return text.utf8.count == 16 && digits
  }

  /// The oldest names beyond the count. Names that the template can't have made are left out.
  ///
  /// - Parameters:
  ///   - names: of the files in the template's directory.
  ///   - pattern: the last part of the template.
  static func old(_ names: [String], _ pattern: String, keeping count: Int) -> [String] {
    names.filter { isMade($0[...], by: pattern) }.sorted().dropLast(count)
  }

  /// Whether the pattern can make a name; a pattern without a placeholder makes only itself.
  private static func isMade(_ name: Substring, by pattern: String) -> Bool {
    let parts = pattern.split(separator: placeholder, maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { return name == pattern }
    guard name.hasPrefix(parts[0]), name.hasSuffix(parts[1]),
      name.utf8.count == parts[0].utf8.count + parts[1].utf8.count + 16
    else { return false }
    return isTime(name.dropFirst(parts[0].count).dropLast(parts[1].count))
  }

  private var place: ExportPath { ExportPath(template) }

  /// Removes partial files of killed exports with such names.
  func removeAbandoned() {
    let pattern = String(place.name)
    PartialFile.removeAbandoned(in: place.directory) { Self.isMade($0, by: pattern) }
  }

  /// Removes the oldest files beyond the count. Directories and other non-files are left alone.
  func removeOld() throws(StoreError) {
    guard let count else { return }
    let directory = place.directory
    let files = directory.names.filter { directory.isFile($0) }
    for name in Self.old(files, String(place.name), keeping: count) {
      let path = directory.path(of: name)
      // Another export may have removed it meanwhile.
      guard unsafe unlink(path) == 0 || errno == ENOENT else {
        throw StoreError(
          .failed, "the export is complete, but cannot remove the old \(path): \(Descriptor.reason())")
      }
    }
  }
}
