package buildcache

import (
	"os"
	"strconv"
)

// sizeFile is where the size of a binary is noted.
func sizeFile(binary string) string { return binary + ".size" }

// whole reports whether a binary has the size that was noted for it: a crash of
// the machine, or a full disk, leaves some cut short.
func whole(binary string) bool {
	noted, err := os.ReadFile(sizeFile(binary))
	if err != nil {
		return false
	}
	info, err := os.Stat(binary)
	return err == nil && string(noted) == strconv.FormatInt(info.Size(), 10)
}

// note makes sure that a binary is on the disk, and notes its size under the name
// that it is going to get.
func note(part, binary string) error {
	file, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return os.WriteFile(sizeFile(binary), []byte(strconv.FormatInt(info.Size(), 10)), 0o644)
}
