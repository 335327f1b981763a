#!/usr/bin/perl
# SPDX-License-Identifier: MIT OR Apache-2.0
# A small HTTP server for the tests of set-up: serves the folder ROOT on 127.0.0.1, also as a proxy (absolute URIs),
# with ranges, and logs each request as "METHOD URI STATUS FIRST_BYTE" into CONTROL/log. While the file CONTROL/slow
# exists, bodies over 64 KiB trickle at 64 KiB per 0.2 s. Writes its port to CONTROL/port.
# Usage: server.pl ROOT CONTROL. Only needs perl-base.
use strict;
use warnings;
use IO::Socket::INET;

my ($root, $control) = @ARGV;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16, ReuseAddr => 1) or die "listen: $!";
open(my $port, '>', "$control/port.new") or die $!;
print $port $server->sockport;
close $port;
rename "$control/port.new", "$control/port";
$SIG{CHLD} = 'IGNORE';
$SIG{PIPE} = 'IGNORE';

sub note {
    open(my $log, '>>', "$control/log") or die $!;
    syswrite $log, join(' ', @_) . "\n";
}

sub serve {
    my ($client) = @_;
    my $request = <$client> // return;
    my ($method, $uri) = split / /, $request;
    my $first = 0;
    while (defined(my $line = <$client>)) {
        last if $line =~ /^\r?\n$/;
        $first = $1 if $line =~ /^Range: bytes=(\d+)-/i;
    }
    my $path = $uri;
    $path =~ s{^http://[^/]+}{};
    $path =~ s/%([0-9a-fA-F]{2})/chr hex $1/ge;
    if ($path =~ /\.\./ || !open(my $file, '<', "$root$path") || -d "$root$path") {
        note($method, $uri, 404, 0);
        print $client "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return;
    } else {
        my $size = -s $file;
        my $status = $first > 0 && $first < $size ? 206 : 200;
        $first = 0 if $status == 200;
        note($method, $uri, $status, $first);
        print $client "HTTP/1.1 $status OK\r\nConnection: close\r\nAccept-Ranges: bytes\r\n",
            "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: ", $size - $first, "\r\n";
        print $client "Content-Range: bytes $first-", $size - 1, "/$size\r\n" if $status == 206;
        print $client "\r\n";
        $client->flush;
        seek $file, $first, 0;
        while (read $file, my $chunk, 65536) {
            print $client $chunk or return;
            $client->flush;
            select undef, undef, undef, 0.2 if -e "$control/slow" && $size > 65536;
        }
    }
}

while (1) {
    my $client = $server->accept or next;
    my $child = fork;
    if (!$child) {
        close $server;
        serve($client);
        exit 0;
    }
    close $client;
}
