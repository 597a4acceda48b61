# Makes a loop device as short as one sector, from this instant on: LOOP_GET_STATUS64, lo_sizelimit, LOOP_SET_STATUS64 (loop(4)).
use strict;
open(my $device, "<", $ARGV[0]) or die "$ARGV[0]: $!\n";
my $status = "\0" x 232;
ioctl($device, 0x4C05, $status) or die "$ARGV[0]: $!\n";
substr($status, 32, 8) = pack("Q", 512);
ioctl($device, 0x4C04, $status) or die "$ARGV[0]: $!\n";
