public import Foundation
public import ReactiveCore

// Foundation's coders already have the functions; here they get the name under which `encode` and `decode` take them.

extension JSONEncoder: TopLevelEncoder {
  public typealias Output = Data
}

extension JSONDecoder: TopLevelDecoder {
  public typealias Input = Data
}

extension PropertyListEncoder: TopLevelEncoder {
  public typealias Output = Data
}

extension PropertyListDecoder: TopLevelDecoder {
  public typealias Input = Data
}
