/// Numbers that the protocol itself fixes; what a broker allows beyond them is in its WELCOME.
public enum Limits {
  /// The longest body of a frame before the handshake is over, in bytes.
  public static let handshakeFrame = 8 * 1024
  /// The least that either side must take, so that every control frame fits.
  public static let smallestFrame = 64 * 1024
  /// The longest message of an ERROR, a GOAWAY or a terminal event, in bytes of UTF-8; an encoder cuts what is longer.
  public static let message: UInt16 = 1024
  /// The longest name of a client or of a broker's software, in bytes of UTF-8; an encoder cuts what is longer.
  public static let name: UInt16 = 255
  /// The only protocol version so far.
  public static let versions: ClosedRange<UInt16> = 1...1
}
