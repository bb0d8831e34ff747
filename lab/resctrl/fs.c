// SPDX-License-Identifier: GPL-2.0
/* The file system: which files and directories there are, and mkdir and rmdir. */
#include <linux/fs_context.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>

#include "resctrl.h"

unsigned int resctrl_rmids = 16;
module_param_named(rmids, resctrl_rmids, uint, 0444);
MODULE_PARM_DESC(rmids, "number of RMIDs (default 16, at most 64)");

unsigned int resctrl_closids = 8;
module_param_named(closids, resctrl_closids, uint, 0444);
MODULE_PARM_DESC(closids, "number of CLOSIDs (default 8, at most 16)");

static char status[256];

void resctrl_say_nothing(void)
{
	status[0] = 0;
}

void resctrl_say(const char *format, ...)
{
	size_t n = strlen(status);
	va_list args;

	va_start(args, format);
	vsnprintf(status + n, sizeof(status) - n, format, args);
	va_end(args);
}

const char *resctrl_said(void)
{
	return status;
}

/* What an inode stands for. */
enum place { FILE_OF,    /* a file: kind */
	     ROOT,       /* the default group: mkdir makes control groups */
	     MON_GROUPS, /* mkdir makes monitoring groups of the group */
	     GROUP,      /* rmdir removes it */
	     PLAIN,      /* info, mon_data and what is in them */
};
struct node {
	enum place place;
	struct group *group; /* the inode holds it */
	unsigned int domain;
	const struct file_kind *kind;
};

static int show(struct seq_file *out, void *unused)
{
	const struct node *n = out->private;
	int err = -ENODEV; /* kernfs' word for a file that was removed */

	mutex_lock(&resctrl_lock);
	if (!n->group->gone)
		err = n->kind->show(out, n->group, n->domain);
	mutex_unlock(&resctrl_lock);
	return err;
}

static int file_open(struct inode *inode, struct file *file)
{
	return single_open(file, show, inode->i_private);
}

static int store(const struct node *n, char *text, size_t count)
{
	int err = -ENODEV;

	if (n->kind->newline) {
		if (!count || text[count - 1] != '\n')
			return -EINVAL;
		text[count - 1] = 0;
	}
	mutex_lock(&resctrl_lock);
	if (!n->group->gone)
		err = n->kind->store(n->group, text);
	mutex_unlock(&resctrl_lock);
	return err;
}

static ssize_t file_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	const struct node *n = file_inode(file)->i_private;
	char *text;
	int err;

	if (!n->kind->store)
		return -EINVAL;
	if (count > PAGE_SIZE)
		return -E2BIG;
	text = memdup_user_nul(from, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	err = store(n, text, count);
	kfree(text);
	return err ?: count;
}

static const struct file_operations file_operations = {
	.owner = THIS_MODULE,
	.open = file_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.write = file_write,
	.release = single_release,
};

/* Writers open it with O_TRUNC. */
static int file_setattr(struct user_namespace *users, struct dentry *dentry, struct iattr *attr)
{
	return 0;
}
static const struct inode_operations file_inode_operations = { .setattr = file_setattr };

static const struct inode_operations dir_inode_operations;

static struct inode *make_inode(struct super_block *sb, umode_t mode, struct node of)
{
	struct inode *inode = new_inode(sb);
	struct node *n = inode ? kmalloc(sizeof(*n), GFP_KERNEL) : NULL;

	if (!n) {
		iput(inode);
		return NULL;
	}
	*n = of;
	if (of.group != &resctrl_default)
		kref_get(&of.group->refs);
	inode->i_private = n;
	inode->i_ino = get_next_ino();
	inode->i_mode = mode;
	inode->i_atime = inode->i_mtime = inode->i_ctime = current_time(inode);
	if (S_ISDIR(mode)) {
		inode->i_op = &dir_inode_operations;
		inode->i_fop = &simple_dir_operations;
		set_nlink(inode, 2);
	} else {
		inode->i_op = &file_inode_operations;
		inode->i_fop = &file_operations;
	}
	return inode;
}

static void evict_inode(struct inode *inode)
{
	struct node *n = inode->i_private;

	clear_inode(inode);
	if (n)
		resctrl_put(n->group);
	kfree(n);
}

/* NULL: no memory. What was made goes with its directory. */
static struct dentry *add(struct dentry *dir, const char *name, umode_t mode, struct node of)
{
	struct dentry *dentry = d_alloc_name(dir, name);
	struct inode *inode = dentry ? make_inode(dir->d_sb, mode, of) : NULL;

	if (!inode) {
		dput(dentry);
		return NULL;
	}
	d_add(dentry, inode);
	if (S_ISDIR(mode))
		inc_nlink(d_inode(dir));
	return dentry;
}

static struct dentry *add_dir(struct dentry *dir, const char *name, struct group *g, enum place place)
{
	return dir ? add(dir, name, S_IFDIR | 0555, (struct node){ .place = place, .group = g }) : NULL;
}

static bool add_files(struct dentry *dir, const struct file_kind *kinds, struct group *g, unsigned int domain)
{
	for (; dir && kinds->name; kinds++)
		if (!add(dir, kinds->name, S_IFREG | kinds->mode, (struct node){ FILE_OF, g, domain, kinds }))
			return false;
	return dir;
}

static bool add_mon_data(struct dentry *dir, struct group *g)
{
	struct dentry *data = add_dir(dir, "mon_data", g, PLAIN);
	unsigned int node;
	char name[16];

	for_each_domain(node) {
		snprintf(name, sizeof(name), "mon_L3_%02u", node);
		if (!add_files(add_dir(data, name, g, PLAIN), resctrl_mon_files, g, node))
			return false;
	}
	return data;
}

static bool populate(struct dentry *dir, struct group *g)
{
	if (!add_files(dir, resctrl_base_files, g, 0) || !add_mon_data(dir, g))
		return false;
	return !is_control(g) || (add_files(dir, resctrl_control_files, g, 0) && add_dir(dir, "mon_groups", g, MON_GROUPS));
}

static bool add_info(struct dentry *root)
{
	struct group *g = &resctrl_default;
	struct dentry *info = add_dir(root, "info", g, PLAIN);

	return add_files(info, resctrl_info_files, g, 0) &&
	       add_files(add_dir(info, "L3", g, PLAIN), resctrl_info_l3, g, 0) &&
	       add_files(add_dir(info, "MB", g, PLAIN), resctrl_info_mb, g, 0) &&
	       add_files(add_dir(info, "L3_MON", g, PLAIN), resctrl_info_l3_mon, g, 0);
}

/* Nothing looks a name up in the new directory before it is full: its lock is held. */
static int attach(struct inode *dir, struct dentry *dentry, struct group *g)
{
	struct inode *inode = make_inode(dir->i_sb, S_IFDIR | 0755, (struct node){ .place = GROUP, .group = g });
	bool full;

	if (!inode)
		return -ENOMEM;
	inode_lock_nested(inode, I_MUTEX_CHILD);
	d_instantiate(dentry, inode);
	dget(dentry); /* until rmdir */
	inc_nlink(dir);
	full = populate(dentry, g);
	inode_unlock(inode);
	return full ? 0 : -ENOMEM;
}

/* rdtgroup_mkdir() */
static int group_mkdir(struct user_namespace *users, struct inode *dir, struct dentry *dentry, umode_t mode)
{
	const struct node *n = dir->i_private;
	struct group *g;
	int err;

	if (strchr(dentry->d_name.name, '\n'))
		return -EINVAL;
	if (n->place != ROOT && n->place != MON_GROUPS)
		return -EPERM;
	mutex_lock(&resctrl_lock);
	resctrl_say_nothing();
	g = n->group->gone ? ERR_PTR(-ENODEV) : resctrl_make(n->place == ROOT ? NULL : n->group);
	mutex_unlock(&resctrl_lock);
	if (IS_ERR(g))
		return PTR_ERR(g);
	err = attach(dir, dentry, g);
	if (err) {
		mutex_lock(&resctrl_lock);
		resctrl_remove(g);
		mutex_unlock(&resctrl_lock);
	}
	return err;
}

/* What is in the directory goes with it. Its locks are given up meanwhile, as by tracefs'
 * instances (tracefs_syscall_rmdir): simple_recursive_removal() takes them. */
static int group_rmdir(struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);
	const struct node *n = inode->i_private;
	int err;

	if (n->place != GROUP)
		return -EPERM;
	inode_unlock(inode);
	inode_unlock(dir);
	mutex_lock(&resctrl_lock);
	err = resctrl_remove(n->group);
	mutex_unlock(&resctrl_lock);
	if (!err)
		simple_recursive_removal(dentry, NULL);
	inode_lock_nested(dir, I_MUTEX_PARENT);
	inode_lock(inode);
	return err;
}

static const struct inode_operations dir_inode_operations = {
	.lookup = simple_lookup,
	.mkdir = group_mkdir,
	.rmdir = group_rmdir,
};

static const struct super_operations super_operations = {
	.statfs = simple_statfs,
	.drop_inode = generic_delete_inode,
	.evict_inode = evict_inode,
};

static int fill_super(struct super_block *sb, struct fs_context *fc)
{
	struct inode *root;

	sb->s_magic = 0x7655821; /* RDTGROUP_SUPER_MAGIC */
	sb->s_op = &super_operations;
	sb->s_blocksize = PAGE_SIZE;
	sb->s_blocksize_bits = PAGE_SHIFT;
	sb->s_time_gran = 1;
	root = make_inode(sb, S_IFDIR | 0755, (struct node){ .place = ROOT, .group = &resctrl_default });
	sb->s_root = d_make_root(root);
	return sb->s_root && add_info(sb->s_root) && populate(sb->s_root, &resctrl_default) ? 0 : -ENOMEM;
}

static unsigned long mounted; /* it can be mounted only once */

static int get_tree(struct fs_context *fc)
{
	int err;

	if (test_and_set_bit(0, &mounted))
		return -EBUSY;
	resctrl_say_nothing();
	err = resctrl_begin() ?: get_tree_nodev(fc, fill_super);
	if (err && test_bit(0, &mounted)) { /* without a super block nothing else ends it */
		resctrl_end();
		clear_bit(0, &mounted);
	}
	return err;
}

static const struct fs_context_operations context_operations = { .get_tree = get_tree };

static int init_fs_context(struct fs_context *fc)
{
	fc->ops = &context_operations;
	return 0;
}

static void kill_sb(struct super_block *sb)
{
	kill_litter_super(sb);
	resctrl_end();
	clear_bit(0, &mounted);
}

static struct file_system_type resctrl_type = {
	.owner = THIS_MODULE,
	.name = "resctrl",
	.init_fs_context = init_fs_context,
	.kill_sb = kill_sb,
};

static int __init homenode_resctrl_init(void)
{
	int err;

	if (resctrl_rmids < 2 || resctrl_rmids > HOMENODE_MAX_RMIDS || resctrl_closids < 1 || resctrl_closids > HOMENODE_MAX_CLOSIDS) {
		pr_err("homenode_resctrl: want 2 to %d RMIDs and 1 to %d CLOSIDs\n", HOMENODE_MAX_RMIDS, HOMENODE_MAX_CLOSIDS);
		return -EINVAL;
	}
	err = sysfs_create_mount_point(fs_kobj, "resctrl");
	if (err)
		return err;
	err = register_filesystem(&resctrl_type);
	if (err)
		sysfs_remove_mount_point(fs_kobj, "resctrl");
	return err;
}

static void __exit homenode_resctrl_exit(void)
{
	unregister_filesystem(&resctrl_type);
	sysfs_remove_mount_point(fs_kobj, "resctrl");
}

module_init(homenode_resctrl_init);
module_exit(homenode_resctrl_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("resctrl of homenode's lab, backed by a memory model on the host");
